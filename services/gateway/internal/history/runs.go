// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// window is the time that rates and durations are of.
	window = time.Minute
	// maxRuns is how many evaluations of a function rates and durations are of.
	maxRuns = 256
)

// run is one evaluation of a function.
type run struct {
	ended  time.Time
	took   time.Duration
	failed bool
}

// summaries returns what each function did, ordered by image.
func summaries(all map[string][]run, now time.Time) []*gatewayv1.GetStatusResponse_Function {
	var functions []*gatewayv1.GetStatusResponse_Function
	for _, label := range slices.Sorted(maps.Keys(all)) {
		functions = append(functions, summary(label, all[label], now))
	}
	return functions
}

// summary returns what a function did: runs are those in the window, the newest first.
func summary(label string, runs []run, now time.Time) *gatewayv1.GetStatusResponse_Function {
	failed, took := 0, make([]time.Duration, len(runs))
	for i, r := range runs {
		took[i] = r.took
		if r.failed {
			failed++
		}
	}
	slices.Sort(took)
	// A function with more evaluations than are remembered has them in less time than the window.
	seconds := window.Seconds()
	if len(runs) == maxRuns {
		seconds = max(now.Sub(runs[maxRuns-1].ended), time.Millisecond).Seconds()
	}
	return &gatewayv1.GetStatusResponse_Function{
		Image: label, Rate: float64(len(runs)) / seconds, FailedRate: float64(failed) / seconds,
		Median: durationpb.New(quantile(took, .5)), P99: durationpb.New(quantile(took, .99)),
		Samples: int32(len(runs)), //nolint:gosec // at most maxRuns
	}
}

// quantile returns the value of sorted that the share q of the values does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
