// SPDX-License-Identifier: Apache-2.0

//go:build !race

package pool_test

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	aheadSeeds    = flag.Uint64("ahead.seeds", 5, "how many times to simulate each load")
	aheadServices = flag.String("ahead.services", "5s", "how long evaluations take, separated by commas")
)

// loads are the patterns in which requests come. The time to live is 30 minutes.
func loads() []load {
	return []load{
		{name: "steps", length: 3 * time.Hour, most: 10, rate: func(at time.Duration) float64 {
			return []float64{0.5, 4, 10, 4, 0.5}[min(int(at/(20*time.Minute)), 4)]
		}},
		{name: "ramps", length: 3 * time.Hour, most: 10, rate: func(at time.Duration) float64 {
			up, down := at.Minutes()/30, (90-at.Minutes())/30
			return 10 * max(0.02, min(1, up, down))
		}},
		{name: "bursts", length: 3 * time.Hour, most: 12, rate: func(at time.Duration) float64 {
			if (at+5*time.Minute)%(10*time.Minute) < 30*time.Second {
				return 12
			}
			return 0.3
		}},
		{name: "daily", length: 36 * time.Hour, most: 2, rate: func(at time.Duration) float64 {
			sun := math.Sin((at.Hours() - 6) / 24 * 2 * math.Pi)
			return 0.01 + 1.99*math.Pow(max(0, sun), 2)
		}},
	}
}

// TestScalingAheadWaitsLess holds that with scaling ahead evaluations wait for less time in each load, fewer of them
// in all loads together, and pods exist for no more time, than if pods are created only when leases wait. How many
// evaluations of a burst wait that no earlier request announces differs by chance, one way or the other.
func TestScalingAheadWaitsLess(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "load\tservice\trequests\twaits\tahead\twaited\tahead\tpod hours\tahead\t")
	without, with := rules()
	var all, allAhead result
	for _, l := range loads() {
		var before, after result
		for service := range strings.SplitSeq(*aheadServices, ",") {
			var one, other result
			for seed := range *aheadSeeds {
				one.add(l.serve(seed, duration(service), without))
				other.add(l.serve(seed, duration(service), with))
			}
			fmt.Fprintf(rows, "%s\t%s\t%d\t%d\t%d\t%.0f s\t%.0f s\t%.1f\t%.1f\t\n", l.name, service, one.requests, one.waits,
				other.waits, one.waited.Seconds(), other.waited.Seconds(), one.podTime.Hours(), other.podTime.Hours())
			before.add(one)
			after.add(other)
		}
		all.add(before)
		allAhead.add(after)
		if after.waited >= before.waited {
			t.Errorf("%s: evaluations wait for %s, and without scaling ahead for %s", l.name, after.waited, before.waited)
		}
		if after.podTime > before.podTime {
			t.Errorf("%s: pods exist for %s, and without scaling ahead for %s", l.name, after.podTime, before.podTime)
		}
	}
	if allAhead.waits >= all.waits {
		t.Errorf("%d evaluations wait, and without scaling ahead %d", allAhead.waits, all.waits)
	}
	_ = rows.Flush() // a strings.Builder takes all
	t.Log("\n" + table.String())
}
