// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Groups returns the process IDs in the named control group and in all groups below it. The keys of the map are the
// directories of the groups. Groups searches every hierarchy, and omits groups that are removed during the call.
func Groups(name string) (map[string][]int, error) {
	roots, err := listHierarchies()
	if err != nil {
		return nil, err
	}
	groups := map[string][]int{}
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				groups[path] = listProcesses(path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// Processes returns the sorted IDs of all processes in the groups, without duplicates. There are duplicates in cgroup
// v1, because each process belongs to a group in every hierarchy.
func Processes(groups map[string][]int) []int {
	var all []int
	for _, pids := range groups {
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// listProcesses returns the process IDs in a group, or none if the group does not exist.
func listProcesses(dir string) []int {
	content, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for _, line := range strings.Fields(string(content)) {
		// Skip the ID 0, which the kernel shows for each process of another PID namespace.
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
