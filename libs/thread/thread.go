// SPDX-License-Identifier: Apache-2.0

// Package thread runs code on threads of the operating system whose state it changes.
package thread

import (
	"runtime"
	"time"
)

// Slack is how much later than it asked for a thread of a function, or of a server, may wake from a sleep. Beyond a
// millisecond there is little left to save.
const Slack = time.Millisecond

// Own calls f on a thread that no other goroutine ever runs on, neither before f changed it in ways that cannot be
// undone nor after: Go ends a thread whose goroutine ends without unlocking it, and starts new threads from others. It
// returns when f has.
//
// A panic of f ends the program. Where a thread may send no signals to others of the program, as some kernels have it,
// f must allocate little: a garbage collection that begins on it cannot interrupt them, and waits for their next
// function call instead.
func Own(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if !isMain() {
			defer close(done)
			f()
			return
		}
		// The main thread does not end before the program. It is kept from others meanwhile.
		defer runtime.UnlockOSThread()
		defer close(done)
		Own(f)
	}()
	<-done
}
