// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads the control group of this container, in version 1 or 2 of control groups: its memory limit,
// its processes, and the number of processes that the kernel killed because memory ran out.
package cgroup

import "path/filepath"

// Container is the path where a container finds its own control group.
const Container = "/sys/fs/cgroup"

// limits contains the names of the files with the memory limit, in version 2 and version 1 of control groups.
var limits = []string{"memory.max", "memory/memory.limit_in_bytes"}

// unlimited is the smallest value that counts as no limit. In version 1 of control groups, the kernel shows a
// larger number if there is no limit.
const unlimited = 1 << 60

// MemoryLimit returns the memory limit of the container whose control group is at root, in bytes. It returns false
// if there is no limit or it is unknown. The limit may change while the container runs.
func MemoryLimit(root string) (limit int64, ok bool) {
	for _, name := range limits {
		if limit, ok = readNumber(filepath.Join(root, name)); ok {
			return limit, limit > 0 && limit < unlimited
		}
	}
	return 0, false
}
