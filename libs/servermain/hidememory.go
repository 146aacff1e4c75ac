// SPDX-License-Identifier: Apache-2.0

//go:build linux

package servermain

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hideMemory hides the environment and the memory of this process from processes of the same user, such as functions.
// The environment contains credentials, and the memory other callers' packages. The kernel then makes root the owner
// of most files in /proc/PID. Lists of processes, such as the list of children, stay readable for all. Programs that
// this program starts are not hidden.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep secrets from functions: %w", os.NewSyscallError("prctl", err))
	}
	return nil
}
