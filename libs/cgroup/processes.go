// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usualProcesses is the maximum number of processes that we assume if the container has no limit of its own. The
// limit of the pod or the node then applies, but a container cannot read it.
const usualProcesses = 4096

// Processes returns the maximum and the current number of processes and threads in the control group at root. It
// returns false on a machine without such a group.
func Processes(root string) (limit, used int64, ok bool) {
	for _, dir := range []string{root, filepath.Join(root, "pids")} {
		if used, ok = readNumber(filepath.Join(dir, "pids.current")); ok {
			if limit, ok = readNumber(filepath.Join(dir, "pids.max")); !ok {
				limit = usualProcesses
			}
			return limit, used, true
		}
	}
	return 0, 0, false
}

func readNumber(file string) (number int64, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	number, err = strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return number, err == nil
}
