// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads what the kernel reports of the control group of this container,
// of version 1 or 2: its memory limit, and the processes that were killed for memory.
package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Container is where containers find their own control group.
const Container = "/sys/fs/cgroup"

// limits are the files with the memory limit, of version 2 and of version 1.
var limits = []string{"memory.max", "memory/memory.limit_in_bytes"}

// unlimited is less than what version 1 has for no limit.
const unlimited = 1 << 60

// MemoryLimit returns how many bytes the container whose control group is at root may
// have; false if there is no limit, or none that is known. It may change while the
// container runs.
func MemoryLimit(root string) (limit int64, ok bool) {
	for _, name := range limits {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		return limit, err == nil && limit > 0 && limit < unlimited
	}
	return 0, false
}
