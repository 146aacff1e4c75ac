// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// Slacken sets the timer slack, which lets threads wake slightly late, for all threads of the program. It restarts
// the program to do so.
//
// While a program is busy, the monitor thread of Go's runtime repeatedly sleeps for 20 microseconds, and wakes
// after 70 microseconds with Linux's default slack. For a server whose requests last milliseconds, this costs a
// tenth of its processor time. The monitor may wake later, because its task is to preempt goroutines that run for
// 10 ms.
//
// Slacken must be the first statement of a server's main function. A thread can set only its own slack, and new
// threads inherit it. Because the monitor thread already runs, the program executes itself again from a thread with
// more slack. If that fails, or if the program already has this slack, it continues unchanged.
func Slacken() {
	runtime.LockOSThread() // the thread with slack must call execve
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(osthread.Slack) {
		return
	}
	_ = Execute(os.Args, os.Environ()) //nolint:forbidigo // restarts this program with the same environment
}

// Execute sets the timer slack of the current thread and restarts the program in the same process, with args and
// env. It returns only if that fails.
func Execute(args, env []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, err := os.Executable()
	if err != nil {
		return err
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(osthread.Slack), 0, 0, 0) // fails on kernels without slack
	return os.NewSyscallError("execve", syscall.Exec(path, args, env))
}
