// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"slices"
	"testing"
	"time"
)

// reportQuantiles reports the median and the 99th percentile of durations.
func reportQuantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50-ms", .5}, {"p99-ms", .99}} {
		b.ReportMetric(took[int(q.share*float64(len(took)-1))].Seconds()*1000, q.name)
	}
}
