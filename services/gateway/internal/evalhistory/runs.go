// SPDX-License-Identifier: Apache-2.0

package evalhistory

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// window is the period for which the status page shows rates and durations of functions.
	window = time.Minute
	// maxRuns is the maximum number of stored evaluations of each function. They determine its rate and durations.
	maxRuns = 256
)

type run struct {
	ended  time.Time
	took   time.Duration
	failed bool
}

// summarizeFunctions returns the rate, the failures and the durations of each function, ordered by image. The argument
// all maps the image of each function to its evaluations in the last minute.
func summarizeFunctions(all map[string][]run, now time.Time) []*gatewayv1.GetStatusResponse_Function {
	var functions []*gatewayv1.GetStatusResponse_Function
	for _, label := range slices.Sorted(maps.Keys(all)) {
		functions = append(functions, summarizeRuns(label, all[label], now))
	}
	return functions
}

// summarizeRuns returns the rate, the failures and the durations of a function. runs are the function's evaluations
// in the last minute, starting with the newest.
func summarizeRuns(label string, runs []run, now time.Time) *gatewayv1.GetStatusResponse_Function {
	failed, took := 0, make([]time.Duration, len(runs))
	for i, r := range runs {
		took[i] = r.took
		if r.failed {
			failed++
		}
	}
	slices.Sort(took)
	// Usually the rate covers a minute. But at most maxRuns evaluations are stored. If all of them ended within the last
	// minute, older evaluations may be missing. The rate then covers only the time since the oldest stored evaluation.
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

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
