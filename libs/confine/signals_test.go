// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestSignalsToOtherFunctions has a function signal another one whose process it has guessed. Only
// tgkill reaches it, and only on kernels without Landlock's signal scope: seccomp does not know
// which processes are the function's own, and Go and C libraries need the call for these.
func TestSignalsToOtherFunctions(t *testing.T) {
	for _, tc := range []struct {
		abi    int
		reason string
		want   map[string]string
	}{
		{6, "the domains are separate", map[string]string{
			"kill": "not permitted", "tgkill": "not permitted", "tkill": "not permitted",
		}},
		{5, "this is the documented gap", map[string]string{
			"kill": "not permitted", "tgkill": "done", "tkill": "not permitted",
		}},
	} {
		t.Run(fmt.Sprint("abi ", tc.abi), func(t *testing.T) {
			runner, end := start(t, config(t).WithKernel(tc.abi, true))
			defer end()
			other := command(t, "hang")
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _, _ = runner.Run(ctx, other, nil) })
			defer running.Wait()
			defer stop()
			dir := filepath.Dir(other.Path)
			testfn.AwaitRunning(t, dir, 1)
			pid := testfn.Running(dir)[0]
			cmd := command(t, "")
			for call, want := range tc.want {
				cmd.Args = []string{fmt.Sprintf("try=%s:%d", call, pid)}
				if got := attempt(t, runner, cmd); !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q: %s", call, got, want, tc.reason)
				}
			}
		})
	}
}
