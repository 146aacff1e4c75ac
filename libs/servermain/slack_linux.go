// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// Slacken sets the timer slack of all threads of the program, by restarting the program.
//
// While a program is busy, the monitor thread of Go's runtime repeatedly sleeps for 20 microseconds. With Linux's
// default slack, it wakes after 70 microseconds. For a server whose requests last milliseconds, this costs a tenth of
// its processor time. The monitor may wake later, because its task is to preempt goroutines that run for 10 ms.
//
// Slacken must be the first statement of a server's main function. A thread can set only its own slack, which new
// threads inherit. Because the monitor thread already runs, the program executes itself again, on a thread with
// slack. If that fails, or if the program was started with this slack, it continues unchanged.
func Slacken() {
	runtime.LockOSThread() // the thread with slack must call execve
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(osthread.Slack) {
		return
	}
	_ = Execute(os.Args, os.Environ()) //nolint:forbidigo // restarts this program with the same environment
}

// Execute replaces the program by itself with slack, args and env. It returns only after an error.
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
