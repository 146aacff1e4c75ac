// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onOwnThread calls f on a thread that no other goroutine ever runs on, neither before f
// changed it in ways that cannot be undone nor after: Go ends a thread whose goroutine ends
// without unlocking it, and starts new threads from others.
//
// f must allocate little. While a thread may send no signals to others of the program, as
// some kernels have it, a garbage collection that begins on it cannot interrupt them, and
// waits for their next function call instead.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			defer close(done)
			f()
			return
		}
		// The main thread cannot be ended. It is kept from others meanwhile.
		defer runtime.UnlockOSThread()
		defer close(done)
		onOwnThread(f)
	}()
	<-done
}

// restrict confines the calling thread, and what is forked from it.
func (c *Confiner) restrict(fn Function, rules ruleset) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep a function from gaining privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("take the capabilities from a function: %w", err)
	}
	if err := rules.enforce(); err != nil {
		return fmt.Errorf("put a function into a Landlock domain: %w", err)
	}
	if err := c.filters[fn.Network].load(); err != nil {
		return fmt.Errorf("put a function under a seccomp filter: %w", err)
	}
	return nil
}

// dropCapabilities takes all capabilities from the calling thread. With no_new_privs, root
// does not get them back by executing a program.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
