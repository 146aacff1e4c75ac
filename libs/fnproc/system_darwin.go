// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// unreadBytes is the ioctl request that returns the number of unread bytes in a pipe: FIONREAD.
const unreadBytes = 0x4004667f

// attributes returns the attributes of a new process that leads its own session. It ignores pidfds, which macOS lacks.
func attributes(launch *Launch, _ *int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: launch.userCredential()}
}

func idOf(stat *syscall.Stat_t) fileID {
	return fileID{
		device: uint64(stat.Dev), inode: stat.Ino, size: stat.Size, //nolint:gosec // an id, whatever its sign
		modified: stat.Mtimespec, moved: stat.Ctimespec,
	}
}

// newHandle returns nil, because macOS has no pidfds.
func newHandle(int) *os.File { return nil }

// awaitHandle returns false, because macOS has no pidfds. Callers must then use awaitEnd.
func awaitHandle(*os.File) (ended bool) { return false }

func awaitEnd(pid int) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return os.NewSyscallError("kqueue", err)
	}
	defer func() { _ = unix.Close(queue) }()
	end := []unix.Kevent_t{{
		Ident:  uint64(pid), //nolint:gosec // a pid is positive
		Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD, Fflags: unix.NOTE_EXIT,
	}}
	for {
		got := make([]unix.Kevent_t, 1)
		_, err := unix.Kevent(queue, end, got, nil)
		if err == nil && got[0].Flags&unix.EV_ERROR != 0 {
			err = unix.Errno(got[0].Data) //nolint:gosec // the kernel puts an error number there
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH): // the process has already exited
			return nil
		default:
			return os.NewSyscallError("kevent", err)
		}
	}
}

// filesInMemory returns 0, because there are no sandboxes on macOS.
func filesInMemory(string, int64) int64 { return 0 }

// enlargePipes does nothing, because macOS itself enlarges pipes.
func enlargePipes(int, ...*os.File) {}

// setSlack does nothing, because macOS has no timer slack.
func setSlack() (restore func()) { return func() {} }

// Reaper does nothing on macOS, because only Linux makes orphans children of this process.
type Reaper struct{}

// NewReaper returns nil, which is a Reaper that does nothing.
func NewReaper(log *slog.Logger) (*Reaper, error) {
	log.Warn("processes that leave a function's process group are not ended", "system", "darwin")
	return nil, nil //nolint:nilnil // a nil Reaper is one that does nothing
}

// Run does nothing.
func (r *Reaper) Run(context.Context) {}

func (r *Reaper) evaluationEnded() {}

// KillOrphans returns true.
func (r *Reaper) KillOrphans() bool { return true }
