// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"strings"
)

// MachineMemory returns the machine's total memory and the memory that programs can still use, in bytes. It reads a
// file in the format of /proc/meminfo, and returns false if the file does not contain both numbers.
func MachineMemory(file string) (total, available int64, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false
	}
	values := readNumbers([]byte(strings.NewReplacer(":", "", " kB", "").Replace(string(content))))
	total, available = values["MemTotal"]<<10, values["MemAvailable"]<<10
	return total, available, total > 0 && available > 0
}
