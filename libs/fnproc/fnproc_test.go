// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

const input = "kind: ResourceList\nitems: []\n"

func TestRunEnds(t *testing.T) {
	water := []byte(strings.Repeat("water ", 1000))
	tests := map[string]struct {
		reason   string
		function string
		want     fnproc.Outcome
	}{
		"ok": {
			"what a function writes is its output", "echo",
			fnproc.Outcome{Output: []byte(input), Status: "exit status 0"},
		},
		"fails": {
			"a function that fails is an outcome and no error", "exit1-garbage",
			fnproc.Outcome{Output: []byte("kind: ["), Log: []byte("failed halfway\n"), ExitCode: 1, Status: "exit status 1"},
		},
		"killed": {
			"so is one that a signal ends", "signal",
			fnproc.Outcome{Log: []byte("about to die\n"), ExitCode: -1, Signal: syscall.SIGKILL, Status: "signal: killed"},
		},
		"crashes": {
			"and the signal is told", "signal=11",
			fnproc.Outcome{
				Log: []byte("about to die\n"), ExitCode: -1,
				Signal: syscall.SIGSEGV, Status: "signal: segmentation fault",
			},
		},
		"log only": {
			"an output may be empty", "bad-utf8",
			fnproc.Outcome{Log: []byte("broken: \xff\xfe\xc3(\n"), ExitCode: 1, Status: "exit status 1"},
		},
		"silent": {
			"so may be both", "empty",
			fnproc.Outcome{Status: "exit status 0"},
		},
		"exactly the limit": {
			"a limit may be reached", "flood-stdout=6000",
			fnproc.Outcome{Output: water, Status: "exit status 0"},
		},
		"exactly the limit of the log": {
			"in both streams", "flood-stderr=6000",
			fnproc.Outcome{Log: water, Status: "exit status 0"},
		},
		"leaves a child": {
			"a child that does not hold the output delays nothing, and ends with its function", "orphan",
			fnproc.Outcome{Output: []byte(input), Status: "exit status 0"},
		},
		"a child writes the rest": {
			"what is written after the function has exited is part of the output", "hold=100ms",
			fnproc.Outcome{Output: []byte(input), Status: "exit status 0"},
		},
		"a daemon writes the rest": {
			"in another session too", "hold=100ms,daemon",
			fnproc.Outcome{Output: []byte(input), Status: "exit status 0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, _ := install(t, tc.function)
			cmd.MaxOutput, cmd.MaxLog = int64(len(water)), int64(len(water))
			got, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, []byte(input))
			if err != nil {
				t.Fatalf("Run: %v: %s", err, tc.reason)
			}
			// A core file makes no difference.
			got.Status = strings.TrimSuffix(got.Status, " (core dumped)")
			if diff := cmp.Diff(tc.want, got, emptyIsNil); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// emptyIsNil makes no difference between empty and nil byte slices.
var emptyIsNil = cmp.Transformer("string", func(b []byte) string { return string(b) })

func TestRunLargeInput(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	tests := map[string]struct {
		reason, function string
		want             []byte
	}{
		"read": {"a large input comes back whole", "echo", large},
		"ignored": {
			"a function need not read its input",
			"ignore-stdin", []byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"),
		},
		"daemon": {
			"what a function wrote is read to the end though a process in another session stays",
			"daemon", large,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, dir := install(t, tc.function)
			t.Cleanup(func() { testfn.Kill(dir) }) // without a Reaper daemons stay
			got, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, large)
			if err != nil || got.ExitCode != 0 {
				t.Fatalf("Run: %v, %s, log %q", err, got.Status, got.Log)
			}
			if !bytes.Equal(got.Output, tc.want) {
				t.Errorf("%d bytes of output, want %d: %s", len(got.Output), len(tc.want), tc.reason)
			}
		})
	}
}

func TestRunStartsAsTold(t *testing.T) {
	t.Setenv("SECRET", "of the runner")
	cmd, dir := install(t, "testfn")
	cmd.Args = []string{"env"}
	cmd.Env = []string{"COLOUR=blue"}
	cmd.Dir = dir
	cmd.Path = "./testfn"
	got, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `message: "COLOUR=blue"`; !strings.Contains(string(got.Output), want) {
		t.Errorf("the output has no %s:\n%s", want, got.Output)
	}

	cmd.Env = nil
	if got, err = fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got.Output), "message") {
		t.Errorf("no environment was given, and there is one:\n%s", got.Output)
	}
}
