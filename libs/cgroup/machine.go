// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"strings"
)

// MachineMemory returns the machine's memory and the memory available to programs in bytes, from a file like
// /proc/meminfo. It returns false if they are unknown.
func MachineMemory(file string) (total, available int64, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false
	}
	values := readNumbers([]byte(strings.NewReplacer(":", "", " kB", "").Replace(string(content))))
	total, available = values["MemTotal"]<<10, values["MemAvailable"]<<10
	return total, available, total > 0 && available > 0
}
