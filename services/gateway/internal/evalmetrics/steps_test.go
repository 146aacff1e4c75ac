// SPDX-License-Identifier: Apache-2.0

package evalmetrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

func newActive(t *testing.T) *evalmetrics.Active {
	t.Helper()
	active := evalmetrics.NewActive(noop.NewMeterProvider())
	return active
}

func TestStepsOfAnEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active := newActive(t)
		e := active.Begin("fn:v1")
		for _, step := range []struct {
			phase, reason string
			took          time.Duration
		}{
			{"resolve", "", time.Second},
			{"queue", "2 wait", 2 * time.Second},
			{"queue", "1 waits", 3 * time.Second},
			{"run", "", 4 * time.Second},
		} {
			if step.phase == "queue" && e.Attempts() == 0 {
				e.Attempt()
			}
			e.Enter(step.phase)
			e.Waits(step.reason)
			time.Sleep(step.took) //nolint:forbidigo // the time of the test's bubble
		}
		if diff := cmp.Diff(map[string]int32{"run": 1}, active.Counts()); diff != "" {
			t.Errorf("active (-want +got):\n%s", diff)
		}
		e.End()
		want := []evalmetrics.Step{
			{Phase: "resolve", Took: time.Second},
			{Phase: "queue", Attempt: 1, Offset: time.Second, Took: 5 * time.Second, Reason: "1 waits"},
			{Phase: "run", Attempt: 1, Offset: 6 * time.Second, Took: 4 * time.Second},
		}
		if diff := cmp.Diff(want, e.Steps()); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int32{}, active.Counts()); diff != "" {
			t.Errorf("active (-want +got):\n%s", diff)
		}
	})
}

func TestStepsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newActive(t).Begin("fn:v1")
		for range 100 {
			for _, phase := range []string{"queue", "run"} {
				e.Enter(phase)
				time.Sleep(time.Second) //nolint:forbidigo // likewise
			}
		}
		e.End()
		steps := e.Steps()
		if last := steps[len(steps)-1]; len(steps) != 32 || last.Took != time.Second {
			t.Errorf("%d steps, the last one %+v", len(steps), last)
		}
	})
}
