// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// newHandle returns a file for a pidfd, which it takes over; nil if there is none.
func newHandle(pidfd int) *os.File {
	if pidfd < 0 {
		return nil
	}
	_ = unix.SetNonblock(pidfd, true) // that has Go's poller wait for it
	return os.NewFile(uintptr(pidfd), "pidfd")
}

// awaitHandle returns when the process of a pidfd has ended; false if it cannot tell.
//
// A goroutine that waits in the poller costs nothing. One that waits in a system call
// keeps a thread, and for a while one of the few processors of Go's scheduler.
func awaitHandle(handle *os.File) (ended bool) {
	raw, err := handle.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		ready, pollErr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = ready > 0
		return ended || pollErr != nil && !errors.Is(pollErr, unix.EINTR)
	})
	return ended && err == nil
}

// awaitEnd blocks until a process has ended.
func awaitEnd(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}
