// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"io"
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

// writeAvailable writes what there is room for in pipe, and returns how many bytes that
// were.
func writeAvailable(pipe *os.File, data []byte) (n int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.Write(int(fd), data) })
	return max(n, 0)
}

// readAvailable reads from pipe and waits for data until the pipe's read deadline.
// After that it reads what is in the pipe without waiting, and then reports io.EOF.
func readAvailable(pipe *os.File, buf []byte) (int, error) {
	n, err := pipe.Read(buf)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	var readErr error
	if err := raw.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), buf) }); err != nil {
		return 0, err
	}
	switch {
	case n > 0:
		return n, nil
	case readErr == nil || errors.Is(readErr, unix.EAGAIN):
		return 0, io.EOF
	}
	return 0, os.NewSyscallError("read", readErr)
}
