// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// writeAvailable writes what fits into pipe without waiting, and returns how many bytes that
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
