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

// scratch are the directories below which components write to fixed paths. They are mounted empty because nothing in
// the cluster needs the machine's files there.
var scratch = []string{"/run", "/var/lib", "/var/log"}

// kernelSettings are settings of the kernel with the values that the kubelet expects. The kubelet would change
// settings with other values, and would change the whole machine because the settings are not per namespace. Files
// with the expected values are therefore mounted over the settings.
var kernelSettings = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

// mountAll sets up the mounts of the cluster's mount namespace.
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

// mountScratch mounts an empty file system over each directory in scratch, but keeps the directories in keep visible.
func mountScratch(keep []string) error {
	var open []*os.File
	defer func() {
		for _, dir := range open {
			dir.Close()
		}
	}()
	// Open the kept directories first, because covering a path does not close its open descriptor.
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

// uncoverDirectory mounts an open directory at its original path, which another mount has covered.
func uncoverDirectory(dir *os.File) error {
	if err := os.MkdirAll(dir.Name(), 0o755); err != nil {
		return fmt.Errorf("make a mount point for %s: %w", dir.Name(), err)
	}
	return bindMount(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), dir.Name())
}

// existingBelow returns the directories in dirs that exist below a parent, parents first, without links or duplicates.
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

// mountResolver mounts source over /etc/resolv.conf, so that the cluster's processes use its name server.
func mountResolver(source string) error {
	const path = "/etc/resolv.conf"
	target, err := os.Readlink(path)
	if err != nil {
		return bindMount(source, path)
	}
	// The link is relative to its directory, which another mount may cover. Create its target, the mount point.
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
