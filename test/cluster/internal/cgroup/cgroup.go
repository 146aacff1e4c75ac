// SPDX-License-Identifier: Apache-2.0

// Package cgroup creates and removes a cluster's control groups, in cgroup v2 or in all hierarchies of v1.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const mountPoint = "/sys/fs/cgroup"

// components is the name of the control group of the cluster's own processes, such as the kubelet. It is separate from
// the groups of pods: in cgroup v2, a group with child groups cannot contain processes.
const components = "components"

// listHierarchies returns the root directories of all control group hierarchies. In cgroup v2, there is only one.
func listHierarchies() ([]string, error) {
	if isUnified() {
		return []string{mountPoint}, nil
	}
	entries, err := os.ReadDir(mountPoint)
	if err != nil {
		return nil, fmt.Errorf("list the control group hierarchies: %w", err)
	}
	var roots []string
	for _, entry := range entries {
		// Skip symbolic links, which are aliases of hierarchies, such as cpu for cpu,cpuacct.
		if entry.IsDir() {
			roots = append(roots, filepath.Join(mountPoint, entry.Name()))
		}
	}
	return roots, nil
}

func isUnified() bool {
	var stat unix.Statfs_t
	return unix.Statfs(mountPoint, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

// Join creates a control group with the child "components" in every hierarchy, and moves this process to the child.
func Join(name string) error {
	roots, err := listHierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := joinGroup(root, name); err != nil {
			return fmt.Errorf("join control group %s in %s: %w", name, root, err)
		}
	}
	return nil
}

func joinGroup(root, name string) error {
	for _, group := range []string{name, filepath.Join(name, components)} {
		dir := filepath.Join(root, group)
		if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := prepareGroup(dir); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, name, components, "cgroup.procs"), []byte("0"), 0o600)
}

// prepareGroup makes a new group usable. In cgroup v1, it copies the processors and memory nodes of the parent, because
// a new group has none. In cgroup v2, it enables all controllers of the parent for the parent's children.
func prepareGroup(dir string) error {
	if isUnified() {
		parent := filepath.Dir(dir)
		controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil {
			return err
		}
		enabled := "+" + strings.Join(strings.Fields(string(controllers)), " +")
		return os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte(enabled), 0o600)
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		inherited, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), inherited, 0o600); err != nil {
			return err
		}
	}
	return nil
}
