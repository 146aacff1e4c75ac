// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

func TestHelperThatHangs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(
		filepath.Join(dir, "docker-credential-slow"),
		[]byte("#!/bin/sh\nexec sleep 1000\n"),
		0o700,
	); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	tests := map[string]struct {
		reason        string
		limit, caller time.Duration
		want          fault.Class
		says          string
	}{
		"its own time is over": {
			"callers have time left, and a stale answer may do", 50 * time.Millisecond, time.Hour, fault.Unavailable,
			"within 50ms",
		},
		"the caller's is over": {
			"the helper may be well", time.Hour, 50 * time.Millisecond, fault.DeadlineExceeded, "did not answer",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.caller)
			defer cancel()
			_, err := runHelper(ctx, tc.limit, "slow", "r.io")
			if fault.Of(err) != tc.want || !strings.Contains(err.Error(), "docker-credential-slow for r.io") ||
				!strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want class %v with the program's name and %q: %s", err, tc.want, tc.says, tc.reason)
			}
		})
	}
}
