// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package servermain

import (
	"os"
	"syscall"
)

func Slacken() {}

// Execute replaces the program by itself with args and env. It returns only after an error.
func Execute(args, env []string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return os.NewSyscallError("execve", syscall.Exec(path, args, env))
}
