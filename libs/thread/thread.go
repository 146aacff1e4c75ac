// SPDX-License-Identifier: Apache-2.0

// Package thread runs code on threads of the operating system whose state it changes.
package thread

import (
	"runtime"
	"time"
)

// Slack is the timer slack of function and server threads: the time by which a sleep may be longer. Above a
// millisecond there is little left to save.
const Slack = time.Millisecond

// Own calls f on a thread that runs no other goroutine before or after, because f changes the thread irreversibly. Go
// stops a thread whose goroutine exits locked, and starts new threads from other threads. Own returns after f.
//
// A panic of f crashes the program. If the thread may not send signals to other threads, as on some kernels, f must
// allocate little: a garbage collection that begins on the thread cannot interrupt the other threads, and waits for
// their next function call instead.
func Own(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if !isMain() {
			defer close(done)
			f()
			return
		}
		// The main thread exits only with the program. It is reserved for f until then.
		defer runtime.UnlockOSThread()
		defer close(done)
		Own(f)
	}()
	<-done
}
