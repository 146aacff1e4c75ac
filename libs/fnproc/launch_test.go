// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// launched returns a command that a shell, as its launcher, runs.
func launched(script string, launch *fnproc.Launch) fnproc.Command {
	return fnproc.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Launch: launch, MaxOutput: 1 << 20, MaxLog: 1 << 20,
	}
}

// TestLaunchersInheritFiles has two processes read the same file, each from its beginning.
func TestLaunchersInheritFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := launched("cat <&3; cat <&4", &fnproc.Launch{Name: "fn", Files: []string{file, file}})
	for range 2 {
		out, err := fnproc.Runner{}.Run(t.Context(), cmd, nil)
		if err != nil || string(out.Output) != "contentcontent" {
			t.Errorf("got %q, %q, %v, want the content of both files", out.Output, out.Log, err)
		}
	}
	cmd.Launch.Files = []string{filepath.Join(t.TempDir(), "missing")}
	if _, err := (fnproc.Runner{}).Run(t.Context(), cmd, nil); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

// TestLaunchersReportSignalsByExitCodes translates what launchers exit with, and nothing else.
func TestLaunchersReportSignalsByExitCodes(t *testing.T) {
	tests := map[string]struct {
		script   string
		launch   *fnproc.Launch
		exitCode int
		signal   syscall.Signal
		status   string
	}{
		"killed":            {"exit 137", &fnproc.Launch{}, -1, syscall.SIGKILL, "signal: killed"},
		"terminated":        {"exit 143", &fnproc.Launch{}, -1, syscall.SIGTERM, "signal: terminated"},
		"failed":            {"exit 1", &fnproc.Launch{}, 1, 0, "exit status 1"},
		"no signal":         {"exit 128", &fnproc.Launch{}, 128, 0, "exit status 128"},
		"large exit code":   {"exit 255", &fnproc.Launch{}, 255, 0, "exit status 255"},
		"without launcher":  {"exit 137", nil, 137, 0, "exit status 137"},
		"launcher's signal": {"kill -9 $$", &fnproc.Launch{}, -1, syscall.SIGKILL, "signal: killed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := fnproc.Runner{}.Run(t.Context(), launched(tc.script, tc.launch), nil)
			if err != nil || out.ExitCode != tc.exitCode || out.Signal != tc.signal || out.Status != tc.status {
				t.Errorf("got %d, %v, %q, %v, want %d, %v, %q", out.ExitCode, out.Signal, out.Status, err,
					tc.exitCode, tc.signal, tc.status)
			}
		})
	}
}

// TestLaunchersThatReachLimits has launchers fail before they start a function, and functions that fail with
// a text like theirs.
func TestLaunchersThatReachLimits(t *testing.T) {
	const busy = "bwrap: Creating new namespace failed: Resource temporarily unavailable"
	tests := map[string]struct {
		reason, script, message string
		exhausted               bool
	}{
		"processes":     {"others end soon", "echo '" + busy + "' >&2; exit 1", "bwrap: ", true},
		"memory":        {"others end soon", "echo 'bwrap: fork: Cannot allocate memory' >&2; exit 1", "bwrap: ", true},
		"other failure": {"it lasts", "echo 'bwrap: Unknown option --x' >&2; exit 1", "bwrap: ", false},
		"function": {
			"a function has no such prefix",
			"echo 'fork: Cannot allocate memory' >&2; exit 1", "bwrap: ", false,
		},
		"more than that":   {"the function has begun", "echo begun >&2; echo '" + busy + "' >&2; exit 1", "bwrap: ", false},
		"output":           {"the function has begun", "echo x; echo '" + busy + "' >&2; exit 1", "bwrap: ", false},
		"success":          {"it is the function's log", "echo '" + busy + "' >&2", "bwrap: ", false},
		"unknown launcher": {"its messages are not known", "echo '" + busy + "' >&2; exit 1", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := launched(tc.script, &fnproc.Launch{Name: "fn@sha256:1", Message: tc.message})
			_, err := fnproc.Runner{}.Run(t.Context(), cmd, nil)
			_, hint := fault.RetryAfter(err)
			start, _ := errors.AsType[*fnproc.StartError](err)
			if !tc.exhausted && err != nil || tc.exhausted && (fault.Of(err) != fault.Exhausted || !hint || start == nil) {
				t.Errorf("got %v, want exhausted %v: %s", err, tc.exhausted, tc.reason)
			}
		})
	}
}

func TestNamesOfFunctions(t *testing.T) {
	if got := (fnproc.Command{Path: "/fn"}).Function(); got != "/fn" {
		t.Errorf("got %q, want the path", got)
	}
	if got := launched("", &fnproc.Launch{Name: "set-namespace@sha256:1"}).Function(); got != "set-namespace@sha256:1" {
		t.Errorf("got %q, want the name", got)
	}
}
