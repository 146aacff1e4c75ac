// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// memory is the metric of a process's memory. It follows Go's garbage collector, so it is only printed.
const memory = "process_resident_memory_bytes"

// held are the metrics of what a program could keep for ever.
var held = []string{"go_goroutines", "process_open_fds", memory}

// amounts are values of metrics, by program and metric: of all its replicas together, since any of them
// may have the connections of the others.
type amounts map[string]float64

func (sys *system) amounts(t *testing.T, metrics ...string) amounts {
	t.Helper()
	ctx, sum := suite.Context(t), make(amounts)
	for program := range sys.replicas {
		pods, err := sys.running(ctx, program)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			page, err := suite.Metrics(ctx, pod.Status.PodIP)
			if err != nil {
				t.Fatal(err)
			}
			for _, metric := range metrics {
				sum[program+" "+metric] += value(page, metric)
			}
		}
	}
	return sum
}

// awaitNoMore waits until no program has more than before, but for new connections beside old ones,
// and the kubelet's probes.
func (sys *system) awaitNoMore(t *testing.T, before amounts) {
	t.Helper()
	suite.Until(suite.Context(t), t, "no program has more than before", func() (bool, string) {
		now := sys.amounts(t, held...)
		for what, n := range now {
			if n > before[what]*3/2 && !strings.HasSuffix(what, memory) {
				return false, fmt.Sprintf("%v, before %v", now, before)
			}
		}
		return true, ""
	})
}

// value returns the sum of a metric's values on a page.
func value(page, metric string) (sum float64) {
	for line := range strings.Lines(page) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ = strings.Cut(name, "{"); name == metric {
			var n float64
			if _, err := fmt.Sscan(number, &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}
