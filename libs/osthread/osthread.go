// SPDX-License-Identifier: Apache-2.0

// Package osthread runs code that irreversibly changes the operating system thread on which it runs, such as code
// that confines the thread by Landlock and seccomp.
package osthread

import (
	"runtime"
	"time"
)

// Slack is the timer slack of function and server threads: the maximum delay that the kernel may add to a sleep, in
// order to wake several threads at once. More than a millisecond would save little more processor time.
const Slack = time.Millisecond

// Own calls f on a thread that no other goroutine uses, and returns when f has returned. The thread then exits,
// because f may change it irreversibly: Go stops a thread whose locked goroutine exits, and never starts new
// threads from a locked thread. A panic of f crashes the program.
//
// On some kernels, f may lose the right to signal other threads. Then f must allocate little: a garbage collection
// that begins on its thread cannot interrupt other threads, and waits until each of them calls a function.
func Own(f func()) {
	done := make(chan struct{})
	go runLocked(f, done)
	<-done
}

// runLocked calls f on the thread of its goroutine and then closes done. The goroutine must exit afterwards.
func runLocked(f func(), done chan<- struct{}) {
	defer close(done)
	runtime.LockOSThread()
	if isMain() {
		// The main thread cannot exit without the program. We call Own again while this goroutine occupies the main
		// thread, so that f runs on another thread.
		defer runtime.UnlockOSThread()
		Own(f)
		return
	}
	f()
}
