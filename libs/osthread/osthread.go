// SPDX-License-Identifier: Apache-2.0

// Package osthread runs code that changes the state of its operating system thread.
package osthread

import (
	"runtime"
	"time"
)

// Slack is the timer slack of function and server threads: the time by which the kernel may lengthen a sleep. More
// than a millisecond would save little more.
const Slack = time.Millisecond

// Own calls f on a thread that runs no other goroutine afterwards, because f may change the thread irreversibly: Go
// stops a thread whose locked goroutine exits, and never starts new threads from a locked thread. Own returns when f
// has returned.
//
// A panic of f crashes the program. If f takes the thread's right to signal other threads, as on some kernels, f must
// allocate little. A garbage collection that begins on such a thread cannot interrupt the other threads, and must
// wait for their next function call.
func Own(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if !isMain() {
			defer close(done)
			f()
			return
		}
		// The main thread cannot be stopped without the program. We block it with this goroutine, so that f runs on
		// another thread.
		defer runtime.UnlockOSThread()
		defer close(done)
		Own(f)
	}()
	<-done
}
