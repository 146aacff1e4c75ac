// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
)

func TestTempDirIsBounded(t *testing.T) {
	tests := map[string]struct{ reason, behaviour string }{
		"bytes":  {"all files count together", "fill=20"},
		"files":  {"directories count as files do", "nest=60"},
		"nested": {"what is nested deeper than can be removed is not waited for", "nest=99"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			if name == "files" {
				cfg.MaxTempFiles = 50
			}
			runner, stop := start(t, cfg)
			defer stop()
			_, err := runner.Run(t.Context(), command(t, tc.behaviour), []byte("x"))
			limit, ok := errors.AsType[*fnproc.LimitError](err)
			if !ok || limit.Stream != "temporary files" || fault.Of(err) != fault.Exhausted {
				t.Errorf("error %v, want that there are too many temporary files: %s", err, tc.reason)
			}
			await.Equal(t, "files that are left beside evaluations", func() int {
				left, _ := filepath.Glob(cfg.TempDir + "/*/*/*")
				return len(left)
			}, 0)
		})
	}
}

// TestOthersDirectoriesStay has a user's clone beside the temporary directories, with a name that begins as
// those of these programs.
func TestOthersDirectoriesStay(t *testing.T) {
	cfg := config(t)
	clone := filepath.Join(cfg.TempDir, "function-runner-main", "src")
	if err := os.MkdirAll(clone, 0o700); err != nil {
		t.Fatal(err)
	}
	_, stop := start(t, cfg)
	stop()
	if _, err := os.Stat(clone); err != nil {
		t.Errorf("a program has removed a directory that is not its own: %v", err)
	}
}

// TestTempDirsAreRemoved has two evaluations write files, a program stop, and one crash.
func TestTempDirsAreRemoved(t *testing.T) {
	cfg := config(t)
	crashed := filepath.Join(cfg.TempDir, "fnr-function-files-crashed")
	locked := filepath.Join(crashed, "1", "d")
	if err := os.MkdirAll(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	runner, stop := start(t, cfg)
	if _, err := os.Stat(crashed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a crash left is there: %v", err)
	}
	cmd := command(t, "fill=2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = runner.Run(ctx, cmd, nil)
	cmd.Args = []string{"try=make-file:"}
	for range 2 {
		if got := attempt(t, runner, cmd); got != "done" {
			t.Errorf("to make a file that must not be there: %q", got)
		}
	}
	other := cfg // another program, which must leave the first one's directory alone
	c, err := confine.New(other)
	if err != nil {
		t.Fatal(err)
	}
	if got := attempt(t, runner, cmd); got != "done" {
		t.Errorf("beside another program: %q", got)
	}
	c.Close()
	stop()
	if left, err := os.ReadDir(cfg.TempDir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestNoPlaceForTempDirs(t *testing.T) {
	cfg := config(t)
	cfg.TempDir = filepath.Join(cfg.TempDir, "not-there")
	if _, err := confine.New(cfg); err == nil {
		t.Error("required, and there is no directory for temporary files: want an error")
	}
	cfg.Level = confine.BestEffort
	runner, stop := start(t, cfg)
	defer stop()
	if got := attempt(t, runner, command(t, "try=read:/proc/meminfo")); got != "done" {
		t.Errorf("a function without a directory for temporary files: %q", got)
	}
}
