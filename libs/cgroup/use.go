// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// uses contains the sources of the used memory, for version 2 and version 1 of control groups: the file with the
// used memory, the file with its details, and the names of the numbers for cached files in the details.
var uses = []struct{ used, details, inactive, active, mapped string }{
	{"memory.current", "memory.stat", "inactive_file", "active_file", "file_mapped"},
	{
		"memory/memory.usage_in_bytes", "memory/memory.stat",
		"total_inactive_file", "total_active_file", "total_mapped_file",
	},
}

// MemoryUse returns the memory that the container whose control group is at root uses, in bytes. Cached files do
// not count, because the kernel drops them when it needs memory. Mapped files, such as running programs, do count.
// MemoryUse returns false if the used memory is unknown.
func MemoryUse(root string) (used int64, ok bool) {
	for _, names := range uses {
		used, ok := readNumber(filepath.Join(root, names.used))
		if !ok {
			continue
		}
		details, err := os.ReadFile(filepath.Join(root, names.details))
		if err != nil {
			return 0, false
		}
		values := readNumbers(details)
		files := values[names.inactive] + values[names.active]
		return used - files + min(values[names.mapped], files), true
	}
	return 0, false
}

// readNumbers parses a file of a control group, whose lines contain a name and a number. It returns the numbers by
// name.
func readNumbers(content []byte) map[string]int64 {
	values := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), " "); found {
			values[name], _ = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return values
}
