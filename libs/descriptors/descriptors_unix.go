// SPDX-License-Identifier: Apache-2.0

//go:build unix

package descriptors

import (
	"os"
	"strconv"
	"syscall"
)

// firstOwn is the first descriptor after standard input, output and error.
const firstOwn = 3

// CloseOnExec marks all descriptors of this program as close-on-exec, except standard input, output and error. Go opens
// files that way. Descriptors that this program inherited from its parent, and descriptors of C libraries, may lack the
// mark.
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
