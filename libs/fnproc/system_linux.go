// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// unreadBytes is the ioctl request that returns the number of unread bytes in a pipe.
const unreadBytes = unix.TIOCINQ

// attributes returns the attributes of a new process that leads its own session. With these attributes, the kernel
// stores the process's pidfd in *pidfd. If the sandbox launcher has a Starter, the kernel kills the process when the
// Starter's thread exits.
func attributes(launch *Launch, pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd, Credential: launch.userCredential()}
	if launch.Starter != nil {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

func idOf(stat *syscall.Stat_t) fileID {
	return fileID{device: stat.Dev, inode: stat.Ino, size: stat.Size, modified: stat.Mtim, moved: stat.Ctim}
}

// filesInMemory returns the number of files in the file system that contains path. It returns 0 if the file system is
// not in memory, or does not have the given size. This is the case, for example, before a sandbox launcher has changed
// its root directory.
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

// newHandle returns a file that owns the pidfd, so that goroutines can wait for the process with Go's network poller.
// It returns nil if pidfd is negative.
func newHandle(pidfd int) *os.File {
	if pidfd < 0 {
		return nil
	}
	_ = unix.SetNonblock(pidfd, true) // Go's poller requires it
	return os.NewFile(uintptr(pidfd), "pidfd")
}

// awaitHandle waits until the process of a pidfd has exited, and returns true. It returns false if it cannot wait for
// the pidfd. It uses Go's network poller. A blocking system call would occupy a thread, and for a while also a
// processor of Go's scheduler.
func awaitHandle(handle *os.File) (ended bool) {
	raw, err := handle.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		ready, pollErr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = ready > 0
		return ended || (pollErr != nil && !errors.Is(pollErr, unix.EINTR))
	})
	return ended && err == nil
}

// awaitEnd blocks until a process has exited.
func awaitEnd(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}

// Sizes of pipes in bytes. A large pipe saves context switches, which are a sixth of the time of an evaluation with a
// megabyte of input. Even larger pipes do not save more. Above a limit per user (64 MiB in total by default), Linux
// makes new pipes tiny. Therefore only inputs that do not fit into a usual pipe get a large pipe.
const (
	usualPipe = 64 << 10
	largePipe = 256 << 10
)

// enlargePipes enlarges pipes if size bytes do not fit into a pipe of the usual size. It ignores errors, because the
// pipes also work with their usual size.
func enlargePipes(size int, pipes ...*os.File) {
	if size <= usualPipe {
		return
	}
	for _, pipe := range pipes {
		if raw, err := pipe.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, largePipe) })
		}
	}
}

// setSlack increases the timer slack of the calling thread until the returned function is called. New processes inherit
// the slack. In functions that are written in Go, it lets the monitor thread of Go's runtime sleep longer. In a busy Go
// program, the monitor sleeps for only 20 microseconds at once, or 70 with Linux's default slack. Waking it so often
// costs a fifth of the processor time of functions, which run for milliseconds and do not need the monitor. On kernels
// without timer slack, we ignore the error.
func setSlack() (restore func()) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(osthread.Slack), 0, 0, 0)
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // restores the default
		runtime.UnlockOSThread()
	}
}
