// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads the control group of this container, of version 1 or 2: its memory limit, its processes and the
// processes that the kernel killed for memory.
package cgroup

import "path/filepath"

// Container is the path of a container's own control group.
const Container = "/sys/fs/cgroup"

// limits contains the names of the files with the memory limit, in version 2 and version 1 of control groups.
var limits = []string{"memory.max", "memory/memory.limit_in_bytes"}

// unlimited is the value from which a limit counts as no limit. Version 1 writes a larger number if there is none.
const unlimited = 1 << 60

// MemoryLimit returns the memory limit of the container whose control group is at root, in bytes, or false if it is
// unlimited or unknown. The limit may change while the container runs.
func MemoryLimit(root string) (limit int64, ok bool) {
	for _, name := range limits {
		if limit, ok = readNumber(filepath.Join(root, name)); ok {
			return limit, limit > 0 && limit < unlimited
		}
	}
	return 0, false
}
