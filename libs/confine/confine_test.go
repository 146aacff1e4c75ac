// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
)

// TestOnlyFunctionsAreConfined looks at the threads of this program while functions start
// and after, from goroutines as the runtime spreads them.
func TestOnlyFunctionsAreConfined(t *testing.T) {
	before := confinedThreads(t)
	runner, stop := start(t, config(t))
	cmd := command(t, "echo")
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() {
			for range 10 {
				if got, err := runner.Run(t.Context(), cmd, []byte("x")); err != nil || string(got.Output) != "x" {
					t.Errorf("Run: %v, %s", err, got.Log)
				}
			}
		})
	}
	runs.Wait()
	stop()
	await.Equal(t, "more threads of this program are confined than before",
		func() bool { return confinedThreads(t) > before }, false)
	if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600); err != nil {
		t.Errorf("this program cannot write any more: %v", err)
	}
}

// confinedThreads counts the threads of this program that have a filter, or may not gain
// privileges. A thread that is about to end is waited for.
func confinedThreads(t *testing.T) (confined int) {
	t.Helper()
	for range 1000 {
		confined = 0
		threads, err := filepath.Glob("/proc/self/task/*/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			status, _ := os.ReadFile(thread) // it may have ended
			if bytes.Contains(status, []byte("NoNewPrivs:\t1")) || bytes.Contains(status, []byte("Seccomp:\t2")) {
				confined++
			}
		}
		if confined == 0 {
			return 0
		}
	}
	return confined
}

func TestLevels(t *testing.T) {
	tests := map[string]struct {
		reason  string
		level   confine.Level
		abi     int
		seccomp bool
		logged  string
		err     string
	}{
		"newest":      {"nothing is missing", confine.Require, 6, true, "lacks=[]", ""},
		"no scopes":   {"the filter does it", confine.Require, 5, true, "cannot signal single processes", ""},
		"no Landlock": {"the best is what is left", confine.BestEffort, 0, true, "lacks=\"[Landlock", ""},
		"Landlock is required": {
			"the operator wants to know", confine.Require, 0, true,
			"", "this system lacks Landlock (Linux 5.13)",
		},
		"seccomp is required": {"likewise", confine.Require, 6, false, "", "seccomp filters"},
		"off":                 {"the log says it", confine.Off, 6, true, "functions are not confined", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			cfg := config(t).WithKernel(tc.abi, tc.seccomp)
			cfg.Level = tc.level
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			c, err := confine.New(cfg)
			if err == nil {
				defer c.Close()
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q: %s", err, tc.err, tc.reason)
				}
				return
			}
			if err != nil || !strings.Contains(log.String(), tc.logged) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("%v, log %q, want one line with %q: %s", err, &log, tc.logged, tc.reason)
			}
		})
	}
}

// TestWithoutLandlock has the rest hold where that is missing.
func TestWithoutLandlock(t *testing.T) {
	cfg := config(t).WithKernel(0, true)
	cfg.Level = confine.BestEffort
	runner, stop := start(t, cfg)
	defer stop()
	cmd := command(t, "")
	for what, want := range map[string]string{
		fmt.Sprintf("kill:%d", os.Getpid()): "operation not permitted",
		"socket:tcp,127.0.0.1:1":            "operation not permitted",
		"make-file:":                        "done",
	} {
		cmd.Args = []string{"try=" + what}
		if got := attempt(t, runner, cmd); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}
