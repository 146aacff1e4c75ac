// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/status"
)

// report prints what happened, and what callers noticed of it.
func report(t *testing.T, c *crowd, st *storm, w *watcher) {
	t.Helper()
	begin, took, causes := w.begin, make([]time.Duration, 0, len(c.calls)), make(map[string]int)
	for _, got := range c.calls {
		switch {
		case got.excused:
			causes["in flight in a gateway that was killed"]++
		case got.err != nil:
			causes[status.Code(got.err).String()]++
		case got.wrong:
			causes["wrong result"]++
		default:
			took = append(took, got.took)
		}
	}
	takeovers := 0.0
	for _, n := range w.takeovers {
		takeovers += n
	}
	t.Logf("%d requests; failures: %v; %d cold starts (%.2f per 100 requests), %d function pods at a time at most; "+
		"%.0f takeovers of functions", len(c.calls), causes, len(w.started),
		100*float64(len(w.started))/float64(max(len(c.calls), 1)), w.most, takeovers)
	if len(took) > 0 {
		t.Logf("answers: p50 %v, p99 %v, slowest %v", quantile(took, 50), quantile(took, 99), quantile(took, 100))
	}
	for _, h := range st.all {
		slow := c.during(h.begin, h.begin.Add(handover))
		t.Logf("after %5.1fs %s of %s %s: %d answers in the %v after it, p99 %v, slowest %v", h.begin.Sub(begin).Seconds(),
			h.name, h.kind, h.what, len(slow), handover, quantile(slow, 99), quantile(slow, 100))
		if after, ok := w.lostAfter(h); ok {
			t.Logf("  others owned its functions %v after it", after.Round(100*time.Millisecond))
		}
	}
}

// during returns how long the answers to requests took that began in a time.
func (c *crowd) during(begin, end time.Time) (took []time.Duration) {
	for _, got := range c.calls {
		if got.err == nil && got.begin.After(begin) && got.begin.Before(end) {
			took = append(took, got.took)
		}
	}
	return took
}

// quantile returns the time within which so many percent of answers came.
func quantile(took []time.Duration, percent int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(time.Millisecond)
}
