// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/thread"
)

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
