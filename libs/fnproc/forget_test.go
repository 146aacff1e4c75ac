// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestForgetEndsSpareProcesses forgets the functions of one program, whose spare processes have ended then, and whose
// next evaluation has others started again.
func TestForgetEndsSpareProcesses(t *testing.T) {
	cmd, dir := install(t, "echo")
	runner := startPool(t, 2)
	runner.Prepare(cmd)
	awaitWaiting(t, runner, 2)
	runner.Forget(func(function string) bool { return function != cmd.Path })
	awaitWaiting(t, runner, 2)
	runner.Forget(func(function string) bool { return function == cmd.Path })
	awaitWaiting(t, runner, 0)
	if left := testfn.Running(dir); len(left) > 0 {
		t.Errorf("the processes %v run", left)
	}
	got, err := runner.Run(t.Context(), cmd, []byte(input))
	if err != nil || string(got.Output) != input || got.Prefork != fnproc.PreforkMiss {
		t.Fatalf("Run: %v, output %q, prefork %v, want a process of its own", err, got.Output, got.Prefork)
	}
	awaitWaiting(t, runner, 2)
}

// TestForgetBesideStarts forgets functions while their spare processes are started: none is left.
func TestForgetBesideStarts(t *testing.T) {
	cmd, dir := install(t, "echo")
	runner := startPool(t, 2)
	for range 50 {
		runner.Prepare(cmd)
		runner.Forget(func(string) bool { return true })
	}
	awaitWaiting(t, runner, 0)
	runner.Prepare(cmd)
	awaitWaiting(t, runner, 2)
	testfn.AwaitRunning(t, dir, 2) // the others were killed
}
