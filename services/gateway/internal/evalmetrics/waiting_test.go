// SPDX-License-Identifier: Apache-2.0

package evalmetrics_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

// TestWaiting has two evaluations of one function wait, one that goes from phase to phase, and one that runs.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active := newActive(t)
		first, second, moving, runs := active.Begin("a"), active.Begin("a"), active.Begin("short"), active.Begin("b")
		first.Enter("queue")
		first.Waits("all 3 pods are busy")
		moving.Enter("resolve")
		runs.Enter("queue")
		time.Sleep(time.Second) //nolint:forbidigo // virtual time
		second.Enter("queue")
		second.WaitsNow("all 4 pods are busy")
		moving.Names("example.com/canonical:v1")
		moving.Enter("pull")
		moving.Waits("pulling")
		moving.Waits("")
		runs.Enter("run")
		time.Sleep(2 * time.Second) //nolint:forbidigo // likewise
		want := []evalmetrics.Waiting{
			{Image: "a", Phase: "queue", Reason: "all 3 pods are busy", Longest: 3 * time.Second, Count: 2},
			{Image: "example.com/canonical:v1", Phase: "pull", Reason: "pulling", Longest: 2 * time.Second, Count: 1},
		}
		if diff := cmp.Diff(want, active.Waiting(9)); diff != "" {
			t.Errorf("waiting (-want +got):\n%s", diff)
		}
		if steps := second.Steps(); len(steps) != 1 || steps[0].Reason != "" {
			t.Errorf("steps %+v, want one without a reason", steps)
		}
		first.End()
		second.Enter("run")
		moving.End()
		runs.End()
		if got := active.Waiting(9); len(got) != 0 {
			t.Errorf("waiting %+v, although none does", got)
		}
	})
}

func TestWaitingIsBounded(t *testing.T) {
	active := newActive(t)
	for i := range 1000 {
		active.Begin(fmt.Sprint("image-", i)).Enter("resolve")
	}
	if got := active.Waiting(50); len(got) != 50 {
		t.Errorf("%d functions, want 50", len(got))
	}
}
