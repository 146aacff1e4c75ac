// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package servermain

import (
	"os"
	"syscall"
)

// hideMemory does nothing, because only Linux exposes a process's environment and memory to other processes in files.
func hideMemory() error { return nil }

// Slacken does nothing, because only Linux has timer slack.
func Slacken() {}

// Execute restarts the program in the same process, with args and env. It returns only if the restart fails.
func Execute(args, env []string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return os.NewSyscallError("execve", syscall.Exec(path, args, env))
}
