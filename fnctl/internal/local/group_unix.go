// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// killWithChildren makes the cancellation of cmd's context also kill the program's child processes. For example, 'go
// run' starts the function as a child process. The program gets its own session, which has no terminal, so that a
// password prompt fails at once. In a mere process group, the program would stop at the prompt until the timeout.
func killWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
