// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package local

import "os/exec"

// killWithChildren does nothing, because this system has no process groups. Only the program itself is killed.
func killWithChildren(*exec.Cmd) {}
