// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// environ is that of the commands.
var environ = []string{"PATH=/usr/bin:/bin"}

// TestShellRunsACommandInALoop counts what a command appends to a file, and what the loop reports.
func TestShellRunsACommandInALoop(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "calls")
	reported := 0
	Shell(t.Context(), environ, "cat >>"+file, []byte("list\n"), time.Minute, func(err error) bool {
		if err != nil {
			t.Error(err)
		}
		reported++
		return reported < 5
	})
	calls, err := os.ReadFile(file)
	if n := strings.Count(string(calls), "list\n"); err != nil || reported != 5 || n < 5 {
		t.Errorf("%d of %d calls are reported (%v), want 5", reported, n, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v (%v)", left, err)
	}
}

func TestShellReportsFailures(t *testing.T) {
	tests := map[string]struct {
		command, want string
		limit         time.Duration
	}{
		"exit code":         {"sh -c 'exit 3'", "exited with code 3", 0},
		"end of the shell":  {"exit 3; true", "it ended", 0},
		"too slow":          {"sleep 60", "took longer than 10ms", 10 * time.Millisecond},
		"no such program":   {"/nonexistent", "exited with code 127", 0},
		"not a command":     {"'", "it ended", 0},
		"without any limit": {"false", "exited with code 1", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got error
			Shell(t.Context(), environ, tc.command, nil, tc.limit, func(err error) bool {
				got = err
				return false
			})
			if got == nil || !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

// TestShellEndsWithItsContext has a command that does not end by itself.
func TestShellEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pipe := filepath.Join(t.TempDir(), "started")
	go func() {
		defer cancel()
		for {
			if _, err := os.Stat(pipe); err == nil || t.Context().Err() != nil {
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	Shell(ctx, environ, "touch "+pipe+"; sleep 3600", nil, 0, func(err error) bool {
		t.Errorf("reported: %v", err)
		return true
	})
}
