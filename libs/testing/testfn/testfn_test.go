// SPDX-License-Identifier: Apache-2.0

package testfn_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

func TestBehaviours(t *testing.T) {
	tests := map[string]struct {
		reason      string
		status      string // in the form of os/exec; empty for success
		output, log string // substrings of output and log
	}{
		"echo":             {"the input comes back", "", "kind: Input", ""},
		"empty":            {"nothing comes back", "", "", ""},
		"env":              {"the environment comes back", "", `message: "COLOUR=blue"`, ""},
		"warn":             {"error results do not make a function fail", "", "severity: error", "invalid"},
		"exit1":            {"a failure has results and a log", "exit status 1", "severity: error", "failed"},
		"exit1-silent":     {"a failure may say nothing", "exit status 1", "", ""},
		"exit1-garbage":    {"or nonsense", "exit status 1", "kind: [", "failed"},
		"garbage":          {"so may a success", "", "kind: [", ""},
		"bad-utf8":         {"a log may be any bytes", "exit status 1", "", "\xff"},
		"ignore-stdin":     {"there is an output without input", "", "kind: ResourceList", ""},
		"allocate=1000000": {"memory is used, then the input comes back", "", "kind: Input", ""},
		"sleep=1ms":        {"time is used, then the input comes back", "", "kind: Input", ""},
		"greet=10":         {"a function may talk before it reads", "", "kind: Input", "water wate"},
		"leave=1ms":        {"or exit without any output", "", "", ""},
		"signal":           {"the default is to be killed", "signal: killed", "", "die"},
		"signal=15":        {"other signals can be chosen", "signal: terminated", "", "die"},
		"flood-stdout=10":  {"floods can be measured", "", "water wate", ""},
		"flood-stderr=10":  {"on both sides", "", "", "water wate"},
		"no-such-name":     {"a mistake in a test is reported", "exit status 64", "", "no behaviour"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testfn.Install(t, dir, name)
			var output, log bytes.Buffer
			cmd := exec.Command(filepath.Join(dir, name))
			cmd.Env = []string{"COLOUR=blue"}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("kind: Input\n"), &output, &log
			status := ""
			if err := cmd.Run(); err != nil {
				status = err.Error()
			}
			if status != tc.status || !strings.Contains(output.String(), tc.output) || !strings.Contains(log.String(), tc.log) {
				t.Errorf("status %q, output %q, log %q, want %q, %q, %q: %s",
					status, &output, &log, tc.status, tc.output, tc.log, tc.reason)
			}
		})
	}
}

func TestRunning(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	testfn.Install(t, dir, "testfn")
	testfn.Install(t, other, "hang")
	cmd := exec.Command(filepath.Join(dir, "testfn"), "hang-with-child")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testfn.AwaitRunning(t, dir, 2)
	testfn.AwaitRunning(t, other, 0)
	testfn.Kill(dir)
	if err := cmd.Wait(); err == nil {
		t.Error("a function that hangs has ended by itself")
	}
}

// TestAbandoned runs a function that waits for its input, with a child, and closes the input.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	testfn.Install(t, dir, "hang-with-child")
	cmd := exec.Command(filepath.Join(dir, "hang-with-child"))
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testfn.AwaitRunning(t, dir, 2)
	if pids := testfn.Abandoned(dir); len(pids) > 0 {
		t.Errorf("%v are abandoned, but can still get an input", pids)
	}
	_ = input.Close()
	if pids := testfn.Abandoned(dir); len(pids) != 2 {
		t.Errorf("%v are abandoned, want both processes", pids)
	}
	testfn.Kill(dir)
	_ = cmd.Wait()
}
