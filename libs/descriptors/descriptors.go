// SPDX-License-Identifier: Apache-2.0

// Package descriptors keeps open files of this program from the programs that it starts.
package descriptors

import (
	"os"
	"strconv"
	"syscall"
)

// firstOwn is the first descriptor after standard input, output and error.
const firstOwn = 3

// CloseOnExec marks all descriptors of this program as close-on-exec, except standard input, output and error. Go opens
// files that way. The descriptors that this program inherited from whoever started it, and those of C libraries, may be
// without the mark.
func CloseOnExec() {
	if closeRange() == nil {
		return
	}
	entries, _ := os.ReadDir("/dev/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstOwn {
			syscall.CloseOnExec(fd)
		}
	}
}
