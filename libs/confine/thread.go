// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// restrictThread confines the calling thread and the processes forked from it.
func (c *Confiner) restrictThread(fn Function, rules ruleset) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep a function from gaining privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("take the capabilities from a function: %w", err)
	}
	if err := rules.enforceRules(); err != nil {
		return fmt.Errorf("put a function into a Landlock domain: %w", err)
	}
	if err := c.filters[fn.Network].loadFilter(); err != nil {
		return fmt.Errorf("put a function under a seccomp filter: %w", err)
	}
	return nil
}

// dropCapabilities drops all capabilities of the calling thread. With no_new_privs, root does not regain them by
// executing a program.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
