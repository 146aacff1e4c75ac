// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

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
