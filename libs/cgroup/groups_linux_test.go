// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// newGroups returns groups, and skips the test where this program may make none.
func newGroups(t *testing.T, limits cgroup.Limits) *cgroup.Groups {
	t.Helper()
	groups, err := cgroup.NewGroups(limits)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := groups.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/function-runner-%d-*", os.Getpid())); len(left) > 0 {
			t.Errorf("groups are left: %v", left)
		}
	})
	return groups
}

// runIn runs a shell script in a group, and returns what it writes.
func runIn(t *testing.T, group *cgroup.Group, script string) (output string, err error) {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &out, &syscall.SysProcAttr{}
	group.Start(cmd.SysProcAttr, func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	return out.String(), err
}

func take(t *testing.T, groups *cgroup.Groups) *cgroup.Group {
	t.Helper()
	group, err := groups.Take()
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestProcessesBeginInTheirGroup has a process look where it is, and this program stay where it was.
func TestProcessesBeginInTheirGroup(t *testing.T) {
	before, _ := os.ReadFile("/proc/self/cgroup")
	groups := newGroups(t, cgroup.Limits{Memory: 64 << 20, Processes: 20})
	first, second := take(t, groups), take(t, groups)
	inFirst, err := runIn(t, first, "cat /proc/self/cgroup")
	if err != nil || !strings.Contains(inFirst, fmt.Sprintf("function-runner-%d-", os.Getpid())) {
		t.Errorf("got %q, %v, want a group of this program", inFirst, err)
	}
	if inSecond, err := runIn(t, second, "cat /proc/self/cgroup"); err != nil || inSecond == inFirst {
		t.Errorf("got %q, %v, want another group", inSecond, err)
	}
	first.Release()
	if again, err := runIn(t, take(t, groups), "cat /proc/self/cgroup"); err != nil || again != inFirst {
		t.Errorf("got %q, %v, want the group that became free, %q", again, err, inFirst)
	}
	if after, _ := os.ReadFile("/proc/self/cgroup"); string(after) != string(before) {
		t.Errorf("this program is in %q, and was in %q", after, before)
	}
	first.Release()
	second.Release()
}

func TestProcessesOfAGroupAreLimited(t *testing.T) {
	groups := newGroups(t, cgroup.Limits{Processes: 10})
	group := take(t, groups)
	defer group.Release()
	out, err := runIn(t, group, "i=0; while [ $i -lt 30 ]; do sleep 0.2 & i=$((i+1)); done; wait")
	if err == nil || !strings.Contains(out, "fork") {
		t.Errorf("got %q, %v, want an error of fork", out, err)
	}
}

// TestMemoryOfAGroupIsLimited has processes use memory that none of them uses alone.
func TestMemoryOfAGroupIsLimited(t *testing.T) {
	groups := newGroups(t, cgroup.Limits{Memory: 32 << 20, Processes: 20})
	group := take(t, groups)
	if out, err := runIn(t, group, "true"); err != nil || group.Killed() {
		t.Errorf("got %q, %v, killed %t, want success", out, err, group.Killed())
	}
	out, err := runIn(t, group, `
		for i in 1 2 3 4; do head -c 20000000 /dev/zero | tail -c 20000000 | (sleep 0.1; cat >/dev/null) & all="$all $!"; done
		for one in $all; do wait $one || failed=1; done; exit $failed`)
	if !group.Killed() {
		t.Errorf("got %q, %v, want a process killed", out, err)
	}
	group.Release()
	if again := take(t, groups); again.Killed() {
		t.Error("a kill counts for the next use of its group")
	} else {
		again.Release()
	}
}

// TestNoGroups has what runs without groups.
func TestNoGroups(t *testing.T) {
	var groups *cgroup.Groups
	group, err := groups.Take()
	if err != nil || group.Killed() || group.Memory() != 0 {
		t.Errorf("got %v, %v", group, err)
	}
	if out, err := runIn(t, group, "echo x"); err != nil || out != "x\n" {
		t.Errorf("got %q, %v", out, err)
	}
	group.Release()
	if err := groups.Close(); err != nil {
		t.Error(err)
	}
}
