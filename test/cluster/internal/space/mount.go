package space

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// scratch are the folders in which components write at fixed places. Nothing in
// the cluster needs what the machine has there.
var scratch = []string{"/run", "/var/lib", "/var/log"}

// kernelSettings are what the kubelet sets if it does not find it so. They
// belong to the machine and not to a namespace, so the kubelet is shown files
// that say what it wants to read.
var kernelSettings = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

// mount changes this mount namespace only.
func mount(l layout.Layout) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := mountScratch(l.Dir()); err != nil {
		return err
	}
	if err := mountKernelSettings(l.Path("kernel")); err != nil {
		return err
	}
	return mountResolver(l.Config("resolv.conf"))
}

// mountScratch covers the folders with empty ones but keeps the cluster's own
// folder, which is below one of them.
func mountScratch(own string) error {
	// The open folder stays reachable when its path no longer is.
	dir, err := os.Open(own)
	if err != nil {
		return fmt.Errorf("opening the cluster's folder: %w", err)
	}
	defer dir.Close()
	for _, path := range scratch {
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("covering %s: %w", path, err)
		}
	}
	if err := os.MkdirAll(own, 0o750); err != nil {
		return fmt.Errorf("making a place for %s: %w", own, err)
	}
	return bind(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), own)
}

func mountKernelSettings(dir string) error {
	for name, value := range kernelSettings {
		source := filepath.Join(dir, name)
		if err := writeFile(source, value+"\n"); err != nil {
			return err
		}
		if err := bind(source, filepath.Join("/proc/sys", name)); err != nil {
			return err
		}
	}
	return nil
}

// mountResolver makes the cluster's name server the one of all its processes.
func mountResolver(source string) error {
	const path = "/etc/resolv.conf"
	target, err := os.Readlink(path)
	if err != nil {
		return bind(source, path)
	}
	// A link leads into one of the covered folders: a file is missing there.
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	if err := writeFile(target, ""); err != nil {
		return err
	}
	return bind(source, target)
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return nil
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
