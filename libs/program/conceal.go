// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// conceal keeps the environment and the memory of this process from other processes of the same
// user, such as functions: the environment holds credentials, and the memory other callers'
// packages. The kernel then gives most of /proc/PID to root; lists of processes, such as that of
// children, stay readable for all. Programs that this one starts are not concealed.
func conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep secrets from functions: %w", os.NewSyscallError("prctl", err))
	}
	return nil
}
