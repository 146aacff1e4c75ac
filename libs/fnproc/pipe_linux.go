// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Sizes of pipes in bytes. A larger one saves context switches, a sixth of the time
// of an evaluation with a megabyte of input; more than this saves nothing. What all
// pipes of a user may take together is bounded (64 MiB by default), and past it the
// kernel makes new ones tiny, so only inputs that fill a usual pipe get one.
const (
	usualPipe = 64 << 10
	largePipe = 256 << 10
)

// enlarge makes pipes larger if size bytes do not fit a usual one. The kernel may
// refuse; the pipes work as they are.
func enlarge(size int, pipes ...*os.File) {
	if size <= usualPipe {
		return
	}
	for _, pipe := range pipes {
		if raw, err := pipe.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, largePipe) })
		}
	}
}
