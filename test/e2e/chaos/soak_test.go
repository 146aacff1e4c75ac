// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// cpu is the metric of the processor time that a program has used.
const cpu = "process_cpu_seconds_total"

// soak has functions evaluated many times, with one pod-manager and then with more. It prints how many
// evaluations there are in a second, and each program's share of the time. No program has more than
// before in the end.
func soak(ctx context.Context, t *testing.T, c *crowd, evaluations int64) {
	t.Helper()
	before := c.sys.amounts(t, held...)
	for n := 1; n <= managers; n++ {
		c.sys.replicas["pod-manager"] = n
		c.sys.scale(ctx, t, n)
		c.sys.awaitCalm(t)
		c.settle(t)
		c.throughput(ctx, t, evaluations/managers)
	}
	c.sys.awaitNoMore(t, before)
	after := c.sys.amounts(t, held...)
	for _, what := range slices.Sorted(maps.Keys(after)) {
		t.Logf("  %-50s %9.0f, before %9.0f", what, after[what], before[what])
	}
}

// throughput has functions evaluated as fast as that is possible.
func (c *crowd) throughput(ctx context.Context, t *testing.T, evaluations int64) {
	t.Helper()
	before, begin := c.sys.amounts(t, cpu), time.Now()
	var begun atomic.Int64
	for n := range callers {
		c.ended.Go(func() {
			for begun.Add(1) <= evaluations {
				c.add(c.call(ctx, c.images[n%len(c.images)], 0))
			}
		})
	}
	c.wait()
	took, after := time.Since(begin), c.sys.amounts(t, cpu)
	var shares []string
	for _, what := range slices.Sorted(maps.Keys(after)) {
		program, _, _ := strings.Cut(what, " ")
		shares = append(shares, fmt.Sprintf("%s %.2f ms", program, 1000*(after[what]-before[what])/float64(evaluations)))
	}
	t.Logf("%d pod-managers: %d evaluations by %d callers, %.0f each second; processor time of each: %s",
		c.sys.replicas["pod-manager"], evaluations, callers, float64(evaluations)/took.Seconds(),
		strings.Join(shares, ", "))
}
