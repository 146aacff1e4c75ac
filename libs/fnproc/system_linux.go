// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/thread"
)

// unreadBytes is the ioctl for how much of a pipe is unread.
const unreadBytes = unix.TIOCINQ

// attributes returns how a process is started: as the leader of a session, with pidfd filled in, which the
// kernel kills with its starter.
func attributes(launch *Launch, pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd, Credential: launch.credential()}
	if launch.starter() != nil {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

func idOf(stat *syscall.Stat_t) fileID {
	return fileID{device: stat.Dev, inode: stat.Ino, size: stat.Size, modified: stat.Mtim, moved: stat.Ctim}
}

// filesInMemory returns how many files are in a file system in memory of a size, 0 if path is in another one: a
// launcher may not have changed its root directory yet.
func filesInMemory(path string, size int64) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		return 0
	}
	blocks, files := int64(fs.Blocks), int64(fs.Files-fs.Ffree) //nolint:gosec // these numbers fit
	if blocks != (size+fs.Bsize-1)/fs.Bsize {
		return 0
	}
	return files
}

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

// withSlack calls start on a thread with slack, which a process that it starts inherits.
//
// The runtime of a program written in Go has a monitor thread, which sleeps for 20 microseconds at a
// time while there is work; with Linux's usual slack it wakes after 70. A function lives for
// milliseconds and does not need the monitor: waking it took a fifth of the function's processor time.
// A kernel that knows no slack starts it all the same.
func withSlack(start func() (*os.Process, error)) (*os.Process, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(thread.Slack), 0, 0, 0)
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // what the thread had before
	return start()
}
