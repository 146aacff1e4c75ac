// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// killWithChildren makes the context of a program end its child processes too, such as the function of 'go run'. In a
// session of its own, a program that asks for a password on the terminal fails at once. In a background process group
// it would stop until the timeout.
func killWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
