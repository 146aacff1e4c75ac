// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc

import (
	"os/exec"
	"testing"
)

// TestKernelWithoutPidfd: where there are no handles, a process's end is waited for.
func TestKernelWithoutPidfd(t *testing.T) {
	if awaitHandle(newHandle(-1)) {
		t.Error("awaitHandle reports the end of a process without a handle")
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := awaitEnd(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process was reaped, or failed: %v", err)
	}
}
