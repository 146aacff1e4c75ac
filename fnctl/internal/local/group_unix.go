// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// killWithChildren makes the cancellation of a program's context also kill the program's child processes, such as the
// function of 'go run'. The program gets its own session, so that any password prompt fails at once. In a background
// process group of the same session, the program would stop at the prompt until the timeout.
func killWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
