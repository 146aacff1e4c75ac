// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// turnover is the longest that capacity takes from one function to the next in a
// [world] without faults: an evaluation, the end of a pod, and the start of another.
const turnover = 2*time.Second + 23*time.Second + 18*time.Second

// TestFairness has functions want more pods than there may be, all the time, and looks
// at how long each has to wait.
func TestFairness(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		reason    string
		functions int
		global    int // the limit of all functions together
		pods      int // each function's limit
		limit     time.Duration
	}{
		{
			name: "two on three pods", functions: 2, global: 3, pods: 3, limit: 2 * turnover,
			reason: "the pool with the most pods gives one up for one that has none",
		},
		{
			name: "three on two pods", functions: 3, global: 2, pods: 1, limit: 2 * (10*time.Second + turnover),
			reason: "the one without a pod gets another's after ten seconds",
		},
		{
			name: "six on two pods", functions: 6, global: 2, pods: 3, limit: 4 * (10*time.Second + turnover),
			reason: "each gets its turn",
		},
		{
			name: "four on one pod", functions: 4, global: 1, pods: 1, limit: 4 * (10*time.Second + turnover),
			reason: "a single pod goes round",
		},
	}
	for _, test := range tests {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(test.name, " ", seed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(seed, setup{
					Limits: pool.Limits{
						MaxPods: test.pods, MaxWaitlistLength: 1, MaxConcurrency: 2, MaxQueue: 1000,
						TTL: time.Hour, ReadyTimeout: 5 * time.Minute,
					},
					Global: test.global, MaxWaiting: 10000, SchedulingTimeout: time.Minute, Scan: time.Minute, Template: "v0",
				})
				wait := w.crowd(test.functions, 4)
				w.run(20*time.Minute, func() bool { return false })
				if w.err != nil {
					t.Fatal(w.err)
				}
				for f, longest := range wait() {
					if longest > test.limit {
						t.Errorf("function %s waits up to %s, want at most %s: %s", f, longest, test.limit, test.reason)
					}
				}
			})
		}
	}
}

// crowd has a number of callers of each function ask again as soon as they are
// served. The result says how long each function waited at most for the next grant to
// any of its callers.
func (w *world) crowd(functions, callers int) func() map[string]time.Duration {
	longest, last := make(map[string]time.Duration), make(map[string]time.Time)
	id := pool.LeaseID(0)
	for i := range functions {
		f := pool.Function{Reference: string(rune('a' + i)), Digest: "sha256:0"}
		last[f.Reference] = start
		var ask func()
		ask = func() {
			id += maxCallerAttempts
			w.call(caller{id: id, function: f, hold: 2 * time.Second, ended: func() {
				longest[f.Reference] = max(longest[f.Reference], w.now.Sub(last[f.Reference]))
				last[f.Reference] = w.now
				ask()
			}})
		}
		for range callers {
			w.after(time.Duration(i)*time.Second, ask)
		}
	}
	return func() map[string]time.Duration {
		for f, at := range last {
			longest[f] = max(longest[f], w.now.Sub(at))
		}
		return longest
	}
}
