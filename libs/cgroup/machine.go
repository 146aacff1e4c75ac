// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"strings"
)

// MachineMemory returns how many bytes of memory the machine has, and how many of them programs can still get, from a
// file like /proc/meminfo. It returns false where that is not known.
func MachineMemory(file string) (total, available int64, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false
	}
	values := numbers([]byte(strings.NewReplacer(":", "", " kB", "").Replace(string(content))))
	total, available = values["MemTotal"]<<10, values["MemAvailable"]<<10
	return total, available, total > 0 && available > 0
}
