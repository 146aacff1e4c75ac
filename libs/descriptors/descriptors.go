// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package descriptors prevents programs that this program starts from inheriting its open files.
package descriptors

import (
	"os"
	"strconv"
	"syscall"
)

// CloseOnExec marks all descriptors of this program as close-on-exec, except standard input, output and error. Go
// opens all files with this mark. Descriptors that this program inherited from its parent or that C libraries opened
// may lack the mark.
func CloseOnExec() {
	const first = 3
	if closeRange(first) == nil {
		return
	}
	entries, _ := os.ReadDir("/dev/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}
