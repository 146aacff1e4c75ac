// SPDX-License-Identifier: Apache-2.0

//go:build linux

package servermain

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hideMemory prevents processes of the same user, such as functions, from reading this process's environment and
// memory in /proc: these contain credentials, and packages of all callers. It marks the process as not dumpable, so
// that root owns most files in /proc/PID. All users can still read lists of processes, such as the list of
// children. Programs that this program starts are not protected.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep secrets from functions: %w", os.NewSyscallError("prctl", err))
	}
	return nil
}
