// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/thread"
)

// Slacken gives the program slack.
//
// While a program has work, the monitor thread of Go's runtime sleeps for 20 microseconds at a time; with Linux's usual
// slack it wakes after 70. In a server whose requests take milliseconds it does so all the time, for a fifth of the
// processor time beside its functions. What it does can wait: it takes processors from goroutines that run for 10 ms.
//
// It is the first statement of a server's main function: as only a thread itself sets
// its slack, which others inherit, and the monitor thread runs by then, the program executes itself once more. Where
// that is not possible, or the program was started with as much slack, it goes on as it is.
func Slacken() {
	runtime.LockOSThread() // the thread that sets it is the one that is left
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(thread.Slack) {
		return
	}
	_ = Execute(os.Args, os.Environ()) //nolint:forbidigo // this very program, as it was started
}

// Execute has the program execute itself with slack, args and env. It returns only if that fails.
func Execute(args, env []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, err := os.Executable()
	if err != nil {
		return err
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(thread.Slack), 0, 0, 0) // some kernels have none
	return os.NewSyscallError("execve", syscall.Exec(path, args, env))
}
