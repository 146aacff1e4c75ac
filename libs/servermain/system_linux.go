// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// hideMemory hides this process's memory and environment from other processes of the same user, such as functions. Both
// contain credentials and the packages of all callers. hideMemory marks the process as not dumpable, so that root owns
// most of the process's files in /proc. All users can still read lists of processes, such as the list of children.
// Programs that this process starts are not protected.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep secrets from functions: %w", os.NewSyscallError("prctl", err))
	}
	return nil
}

// Slacken restarts a server with more timer slack, so that its threads may wake slightly late. It must be the first
// statement of the main function. If the restart fails, or the program already has this slack, Slacken returns and the
// program continues.
//
// In a busy program, the monitor thread of Go's runtime repeatedly sleeps for 20 microseconds, and wakes after 70
// microseconds with Linux's default slack. This costs a tenth of the processor time of a server whose requests last
// milliseconds. The monitor may wake later, because its task is to preempt goroutines that run for 10 ms. A restart is
// needed because the monitor is already running: a thread can set only its own slack, which new threads inherit.
func Slacken() {
	runtime.LockOSThread() // the thread that sets the slack must call execve
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(osthread.Slack) {
		return
	}
	_ = Execute(os.Args, os.Environ()) //nolint:forbidigo // restarts this program with the same environment
}

// Execute restarts the program in the same process, with args, env and the timer slack that Slacken sets. It returns
// only if the restart fails.
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
