// SPDX-License-Identifier: Apache-2.0

// Package osthread runs code that irreversibly changes its operating system thread, for example by entering a
// sandbox of Landlock or seccomp.
package osthread

import (
	"runtime"
	"time"
)

// Slack is the Linux timer slack of function and server threads. The kernel may delay a timer by up to Slack to wake
// several threads at once. A larger value would save hardly any more processor time.
const Slack = time.Millisecond

// Own calls f on a thread that no other goroutine ever uses, and waits until f returns. The thread then exits, because
// f may have changed it irreversibly. Other threads do not inherit the changes, because Go never starts a thread from a
// locked thread. A panic of f crashes the program.
//
// On some kernels, a sandbox prevents f from signaling other threads. A garbage collection on the thread of f then
// cannot interrupt other threads, and waits until each of them calls a function. To avoid this, f must allocate little
// memory.
func Own(f func()) {
	done := make(chan struct{})
	go runLocked(f, done)
	<-done
}

// runLocked locks its goroutine to a thread, calls f and closes done. The goroutine must exit afterwards, so that the
// thread exits too.
func runLocked(f func(), done chan<- struct{}) {
	defer close(done)
	runtime.LockOSThread()
	if isMain() {
		// The main thread exits only with the program. We occupy the main thread until f returns, so that Own uses another
		// thread.
		defer runtime.UnlockOSThread()
		Own(f)
		return
	}
	f()
}
