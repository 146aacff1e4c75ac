// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// killWithChildren makes the context of a program end its child processes too, such as the function of 'go run'.
func killWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
