// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"bufio"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// killedProgram makes a child process of the tests one that starts a process in a group.
var killedProgram = flag.Bool("child.group", false, "for child processes: start a process in a group, and wait")

// TestChild is what child processes run.
func TestChild(t *testing.T) {
	if !*killedProgram {
		return // this is no child process
	}
	groups, err := cgroup.NewGroups(cgroup.Limits{Processes: 20})
	if err != nil {
		t.Fatal(err)
	}
	group := take(t, groups)
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	group.Start(cmd.SysProcAttr, func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
	_ = cmd.Wait()
}

// TestProcessesOfAKilledProgramEnd kills a program with a process in a group: the next program ends it. What a program
// has that runs is left alone.
func TestProcessesOfAKilledProgramEnd(t *testing.T) {
	next := func() { // begins, and ends
		groups, err := cgroup.NewGroups(cgroup.Limits{Processes: 20})
		if err == nil {
			err = groups.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if groups, err := cgroup.NewGroups(cgroup.Limits{Processes: 20}); err != nil {
		t.Skip(err)
	} else if err := groups.Close(); err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0], "-test.run=^TestChild$", "-child.group")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the program has started nothing: ", lines.Err())
	}
	process := filepath.Join("/proc", lines.Text())
	next()
	if !runs(process) {
		t.Fatal("the process of a program that runs has ended")
	}
	_, _ = program.Process.Kill(), program.Wait()
	if !runs(process) {
		t.Fatal("the process ended with its program: there is nothing to test")
	}
	next()
	for deadline := time.Now().Add(5 * time.Minute); runs(process); {
		if time.Now().After(deadline) {
			t.Fatal("the process of a killed program runs")
		}
		<-time.After(time.Millisecond)
	}
	left, _ := filepath.Glob("/sys/fs/cgroup/*/function-runner-" + strconv.Itoa(program.Process.Pid) + "-*")
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// runs reports whether a process has not ended; one that nothing has waited for has.
func runs(process string) bool {
	_, err := os.Readlink(filepath.Join(process, "exe"))
	return err == nil
}
