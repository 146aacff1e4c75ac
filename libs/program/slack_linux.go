// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/thread"
)

// Slacken gives the program timer slack.
//
// While a program is busy, the monitor thread of Go's runtime sleeps for 20 microseconds repeatedly; with Linux's
// default slack it wakes after 70. A server whose requests last milliseconds pays for that all the time: a tenth of
// its processor time. The monitor's work can wait: it preempts goroutines that run for 10 ms.
//
// Slacken must be the first statement of a server's main function. Only a thread itself can set its slack, new threads
// inherit it, and the monitor thread already runs, so the program executes itself again. If that fails, or the program
// was started with as much slack, it continues unchanged.
func Slacken() {
	runtime.LockOSThread() // the thread with slack must call execve
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(thread.Slack) {
		return
	}
	_ = Execute(os.Args, os.Environ()) //nolint:forbidigo // this very program, as it was started
}

// Execute replaces the program by itself with slack, args and env. It returns only after an error.
func Execute(args, env []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, err := os.Executable()
	if err != nil {
		return err
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(thread.Slack), 0, 0, 0) // fails on kernels without slack
	return os.NewSyscallError("execve", syscall.Exec(path, args, env))
}
