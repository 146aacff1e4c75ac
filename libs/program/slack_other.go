// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package program

import (
	"os"
	"syscall"
)

// Slacken does nothing: only Linux has slack.
func Slacken() {}

// Execute has the program execute itself with args and env. It returns only if that fails.
func Execute(args, env []string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return os.NewSyscallError("execve", syscall.Exec(path, args, env))
}
