// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
		out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
		if err != nil || string(out.Output) != "contentcontent" {
			t.Errorf("got %q, %q, %v, want the content of both files", out.Output, out.Log, err)
		}
	}
	cmd.Launch.Files = []string{filepath.Join(t.TempDir(), "missing")}
	_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
	if err == nil || !strings.Contains(err.Error(), "missing") {
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
			out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), launched(tc.script, tc.launch), nil)
			if err != nil || out.ExitCode != tc.exitCode || out.Signal != tc.signal || out.Status != tc.status {
				t.Errorf("got %d, %v, %q, %v, want %d, %v, %q", out.ExitCode, out.Signal, out.Status, err,
					tc.exitCode, tc.signal, tc.status)
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
