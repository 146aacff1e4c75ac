// SPDX-License-Identifier: Apache-2.0

package space

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// scratch contains directories in which the cluster's programs use fixed paths. The cluster begins with empty
// directories at these paths, because no program needs the machine's files there.
var scratch = []string{"/run", "/var/lib", "/var/log"}

// kernelSettings maps kernel settings to the values that the kubelet expects. If a value differs, the kubelet changes
// it. This would affect the whole machine, because these settings do not belong to a namespace. To prevent this, files
// with the expected values are mounted over the settings.
var kernelSettings = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

// mountAll sets up all mounts of the cluster's mount namespace.
func mountAll(l layout.Layout, keep []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := mountScratch(append(keep, l.Dir())); err != nil {
		return err
	}
	if err := mountKernelSettings(l.Path("kernel")); err != nil {
		return err
	}
	return mountResolver(l.Config("resolv.conf"))
}

// mountScratch mounts empty file systems over the scratch directories. The directories listed in keep stay visible.
func mountScratch(keep []string) error {
	var open []*os.File
	defer func() {
		for _, dir := range open {
			dir.Close()
		}
	}()
	// Open the directories in keep first. An open descriptor stays valid when a mount covers its path.
	for _, path := range existingBelow(scratch, keep) {
		dir, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("keep a directory: %w", err)
		}
		open = append(open, dir)
	}
	for _, path := range scratch {
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("cover %s: %w", path, err)
		}
	}
	for _, dir := range open {
		if err := uncoverDirectory(dir); err != nil {
			return err
		}
	}
	return nil
}

// uncoverDirectory makes an open directory visible again at its path, which another mount has covered.
func uncoverDirectory(dir *os.File) error {
	if err := os.MkdirAll(dir.Name(), 0o755); err != nil {
		return fmt.Errorf("make a mount point for %s: %w", dir.Name(), err)
	}
	return bindMount(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), dir.Name())
}

// existingBelow returns the directories in dirs that exist below parents, with symbolic links resolved and without
// duplicates. Outer directories come first.
func existingBelow(parents, dirs []string) []string {
	var found []string
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(dir)
		if err == nil && slices.ContainsFunc(parents, func(parent string) bool {
			return strings.HasPrefix(path,
				parent+"/")
		}) {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func mountKernelSettings(dir string) error {
	for name, value := range kernelSettings {
		source := filepath.Join(dir, name)
		if err := writeFile(source, value+"\n"); err != nil {
			return err
		}
		if err := bindMount(source, filepath.Join("/proc/sys", name)); err != nil {
			return err
		}
	}
	return nil
}

// mountResolver mounts source over /etc/resolv.conf, so that the cluster uses its own name server.
func mountResolver(source string) error {
	const path = "/etc/resolv.conf"
	target, err := os.Readlink(path)
	if err != nil {
		return bindMount(source, path)
	}
	// /etc/resolv.conf is a symbolic link. Create the target of the link, because a mount requires an existing file. It
	// may be missing in the cluster, because a mount over the target's directory may hide the original file.
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	if err := writeFile(target, ""); err != nil {
		return err
	}
	return bindMount(source, target)
}

func bindMount(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
