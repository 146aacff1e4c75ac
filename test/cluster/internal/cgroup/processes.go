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

// Groups returns the directories of the named group and of all groups below it, in every hierarchy,
// each with its processes. Groups removed in the meantime are left out.
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

// Processes returns the processes of the groups, each once.
func Processes(groups map[string][]int) []int {
	var all []int
	for _, pids := range groups {
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// listProcesses returns the processes of a group. A group that no longer exists has none.
func listProcesses(dir string) []int {
	content, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for _, line := range strings.Fields(string(content)) {
		// Number 0 would be a process of another namespace; killing it would kill this process.
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
