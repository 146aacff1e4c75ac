// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestKillEndsMembersOnly uses a directory in place of a control group.
func TestKillEndsMembersOnly(t *testing.T) {
	member, other := exec.Command("sleep", "60"), exec.Command("sleep", "60")
	for _, command := range []*exec.Cmd{member, other} {
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
	}
	group := t.TempDir()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Appendf(nil, "0\n%d\n", member.Process.Pid),
		0o600); err != nil {
		t.Fatal(err)
	}
	killMember(group, other.Process.Pid)
	killProcesses(group)
	if err := member.Wait(); err == nil {
		t.Error("the member was not killed")
	}
	if err := other.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // The state has its error.
	if status, ok := other.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("the other process ended by %v, want by SIGTERM", other.ProcessState)
	}
}
