// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// BenchmarkColdStart measures the time of an evaluation without a pod, with the images on the node,
// and the time from creating a bare pod until it is ready. All take turns, so that the load of the
// machine is the same for each. It fails if one takes too long.
func BenchmarkColdStart(b *testing.B) {
	contenders := []*contender{barePod(b)}
	for _, endpoint := range []string{"service", "pod-ip"} {
		for _, launcher := range []string{"auto", "init-container"} { // auto is image-volume where nodes can
			c := coldStart(b, endpoint+" "+launcher, map[string]string{"FNR_ENDPOINT": endpoint, "FNR_LAUNCHER": launcher})
			c.maxRatio = maxRatio
			c.longest = maxColdStart
			if c.name == fastest {
				c.maxRatio = maxFastestRatio
			}
			contenders = append(contenders, c)
		}
	}
	for _, c := range contenders {
		c.start() // pulls the images to the node
	}
	for b.Loop() {
		takeTurns(contenders)
	}
	report(b, contenders)
	for _, c := range contenders[1:] {
		c.check(b, contenders[0])
	}
	b.ReportMetric(0, "ns/op") // would be the sum of all
}

const (
	// maxRatio bounds the ratio of a cold start's time to a bare pod's. It is about 1.6; a much
	// larger one means a regression.
	maxRatio = 4
	// fastest is what the manifests have. It waits for nothing else, and may take little more than the pod.
	fastest, maxFastestRatio = "pod-ip auto", 1.8
	// maxColdStart bounds each cold start, on a machine without other load.
	maxColdStart = 3 * time.Second
)

// TestColdStartIsLittleMoreThanAPod alternates default cold starts with bare pods. The first turn
// may have to pull images to the node: it does not change the medians. A disturbance of some turns
// does not affect more of them for long.
func TestColdStartIsLittleMoreThanAPod(t *testing.T) {
	bare, cold := barePod(t), coldStart(t, "cold start", nil)
	const least, most = 3, 9
	ratio := 0.0
	for turns := 1; turns <= least || (turns <= most && ratio > maxRatio); turns++ {
		takeTurns([]*contender{bare, cold})
		ratio = cold.ratio(bare)
	}
	t.Logf("a cold start takes %.1f times as long as a bare pod: %v and %v", ratio, cold.times, bare.times)
	if ratio > maxRatio {
		t.Errorf("that is more than %d times as long", maxRatio)
	}
}

// report prints the table, and the ratios as metrics.
func report(b *testing.B, contenders []*contender) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "start\tp50\tmax\tratio\tphases (mean, s)")
	for _, c := range contenders {
		p50, longest, ratio := c.median(), slices.Max(c.times), c.ratio(contenders[0])
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t%s\n", c.name, p50.Round(time.Millisecond),
			longest.Round(time.Millisecond), ratio, c.phases())
		b.ReportMetric(ratio, strings.ReplaceAll(c.name, " ", "_")+"-ratio")
	}
	_ = table.Flush()
	publish(b, "cold", fmt.Sprintf("```text\n%d starts of each\n%s```\n", len(contenders[0].times), &text))
}
