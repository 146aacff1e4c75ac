// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// identity is the program of the image test/nodejs, which Node.js runs.
const identity = "node ../../cluster/internal/bundle/identity.js"

// latencyGoal is what an evaluation through gateway and pod should take at most, over the bare process. Rate is how
// many begin in a second in the open loop: so few that processors are free, and spare processes have started.
type latencyGoal struct {
	function, items string
	p50, p99, rate  float64
}

// latencyGoals are those of one caller.
var latencyGoals = []latencyGoal{
	{"Go", "1", 0.6, 1.0, 20},
	{"Go", "200", 0.9, 1.1, 10},
	{"Go", "2000", 0.95, 1.1, 1},
	{"Node.js", "1", 0.15, 0.3, 5},
}

// loads are how evaluations follow each other.
func (g latencyGoal) loads() map[string][]string {
	return map[string][]string{
		"in a row": {"--callers", "1"}, fmt.Sprintf("%v a second", g.rate): {"--rate", fmt.Sprint(g.rate)},
	}
}

// BenchmarkWarm compares one caller's evaluations through gateway and pod, with default settings, with the bare
// process: in a row, where each needs a process that starts while the one before is evaluated, and with pauses.
func BenchmarkWarm(b *testing.B) {
	sys := microservices(b, nil)
	image := map[string]string{
		"Go": catalog(b, "set-namespace:v0.4.5"), "Node.js": s.Registry(b, "open").Host + "/test/nodejs:v1",
	}
	bare := map[string]string{"Go": program(b, "set-namespace"), "Node.js": identity}
	table := newTable("function", "items", "load", "bare p50", "pod p50", "p50 over bare", "goal", "p99 over bare", "goal",
		"client")
	for _, goal := range latencyGoals {
		loads := goal.loads()
		for _, load := range slices.Sorted(maps.Keys(loads)) {
			report := runLoadgen(b, append(loads[load], "--image", image[goal.function], "--items", goal.items,
				"--target", "bare=exec:"+bare[goal.function], "--target", "pod="+sys.gateway)...)
			bare, pod := report.both(b)
			table.row(goal.function, goal.items, load, ms(bare.Milliseconds.P50), ms(pod.Milliseconds.P50),
				pod.P50Ratio.String(), fmt.Sprint(goal.p50), pod.P99Ratio.String(), fmt.Sprint(goal.p99),
				ms(pod.ClientMilliseconds))
			b.ReportMetric(pod.P50Ratio.Value, strings.ReplaceAll(
				fmt.Sprintf("%s-%s-%s-p50-ratio", goal.function, goal.items, load), " ", "-"))
		}
	}
	publish(b, "warm", table.String())
	b.ReportMetric(0, "ns/op") // would be the sum of all
}

// throughputPods is how many pods the function has, throughputCallers how many callers and shells there are, and
// throughputGoal how many evaluations the callers should have at least, over those of the shells.
const (
	throughputPods, throughputCallers = 4, 8
	throughputGoal                    = 1.0
)

// BenchmarkThroughput compares callers of a function with several pods with as many shells that start the bare binary
// in a loop on the same processors.
func BenchmarkThroughput(b *testing.B) {
	image := catalog(b, "set-namespace:v0.4.5")
	sys := microservices(b, map[string]string{"FNR_MAX_PODS_PER_FUNCTION": strconv.Itoa(throughputPods)},
		func(sys *system) {
			sys.cacheConfig(b, fmt.Sprintf("- name: %s\n  minPods: %d\n", image, throughputPods))
		})
	sys.awaitReady(b, image, throughputPods)
	report := runLoadgen(b, "--image", image, "--items", "1", "--callers", strconv.Itoa(throughputCallers),
		"--target", "shells=shell:"+program(b, "set-namespace"), "--target", "pods="+sys.gateway)
	shells, pods := report.both(b)
	table := newTable("callers, 1 item", "evaluations in a second", "over the shells", "goal", "p50", "p99", "client")
	table.row(fmt.Sprintf("%d shells", throughputCallers), fmt.Sprintf("%.0f", shells.PerSecond), "", "",
		ms(shells.Milliseconds.P50), ms(shells.Milliseconds.P99), "")
	table.row(fmt.Sprintf("%d callers of %d pods", throughputCallers, throughputPods), fmt.Sprintf("%.0f", pods.PerSecond),
		pods.PerSecondRatio.String(), fmt.Sprint(throughputGoal), ms(pods.Milliseconds.P50), ms(pods.Milliseconds.P99),
		ms(pods.ClientMilliseconds))
	publish(b, "throughput-pods", table.String())
	b.ReportMetric(pods.PerSecondRatio.Value, "throughput-ratio")
	b.ReportMetric(0, "ns/op")
}

// awaitReady waits until a function has so many ready pods.
func (sys *system) awaitReady(b testing.TB, image string, want int) {
	b.Helper()
	conn := sys.connect(b)
	suite.Until(suite.Context(b), b, fmt.Sprintf("%d pods of %s are ready", want, image), func() (bool, string) {
		is, ready := pool(b, conn, image), 0
		for _, pod := range is.GetPods() {
			if pod.GetState() == podmanagerv1.Pod_STATE_READY {
				ready++
			}
		}
		return ready == want, is.String()
	})
}

// program returns the path of a function of the catalog as a program of this machine.
func program(b testing.TB, name string) string {
	b.Helper()
	if *benchFunctions == "" {
		b.Fatal("-bench.functions names no directory with the functions: run make bench-cluster")
	}
	return filepath.Join(*benchFunctions, name)
}

// ms returns a time in milliseconds with three digits or more.
func ms(figure float64) string {
	text := fmt.Sprintf("%.3g", figure)
	if strings.Contains(text, "e") {
		text = fmt.Sprintf("%.0f", figure)
	}
	return text + " ms"
}
