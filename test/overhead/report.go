// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// summary returns the median, 99th percentile and mean of the durations, and the mean processor time of a call.
func (t times) summary() [4]time.Duration {
	var sum time.Duration
	for _, d := range t.evaluations {
		sum += d
	}
	return [4]time.Duration{
		t.quantile(.5), t.quantile(.99), sum / time.Duration(len(t.evaluations)),
		t.cpu / time.Duration(t.calls),
	}
}

// quantile returns the given quantile of the durations. share is, for example, 0.5 for the median.
func (t times) quantile(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t.evaluations))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
