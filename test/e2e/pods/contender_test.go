// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// contender is something whose start is measured.
type contender struct {
	name string
	// start returns the time that it took. What was started is removed before it returns.
	start func() time.Duration
	// phases returns the mean times of the phases, if they are known.
	phases func() string
	times  []time.Duration
	// maxRatio bounds the ratio to the time of the floor, and longest each time.
	maxRatio float64
	longest  time.Duration
}

// takeTurns measures each contender once.
func takeTurns(contenders []*contender) {
	for _, c := range contenders {
		c.times = append(c.times, c.start())
	}
}

// median returns the median of the times so far.
func (c *contender) median() time.Duration {
	return slices.Sorted(slices.Values(c.times))[len(c.times)/2]
}

// ratio returns the ratio of the time to that of the floor.
func (c *contender) ratio(floor *contender) float64 {
	return float64(c.median()) / float64(floor.median())
}

// check fails the benchmark if the contender takes too long.
func (c *contender) check(b *testing.B, floor *contender) {
	b.Helper()
	if ratio := c.ratio(floor); ratio > c.maxRatio {
		b.Errorf("%s takes %.2f times as long as a %s, and may take %.1f times as long", c.name, ratio,
			floor.name, c.maxRatio)
	}
	if longest := slices.Max(c.times); longest > c.longest {
		b.Errorf("%s took %v once, and may take %v", c.name, longest.Round(time.Millisecond), c.longest)
	}
}

// barePod is a pod of plain Kubernetes: the floor.
func barePod(b testing.TB) *contender {
	namespace, number := s.Namespace(b), 0
	start := func() time.Duration {
		number++
		ctx, name := suite.Context(b), fmt.Sprintf("bare-%d", number)
		begin := time.Now()
		s.Create(ctx, b, namespace, s.BarePod(name))
		s.Await(ctx, b, namespace, name, suite.Ready)
		took := time.Since(begin)
		remove(b, namespace, name)
		return took
	}
	return &contender{name: "bare pod", start: start, phases: func() string { return "" }}
}

// coldStart is an evaluation that waits for its pod.
func coldStart(b testing.TB, name string, env map[string]string) *contender {
	sys := microservices(b, env)
	conn := sys.connect(b)
	start := func() time.Duration {
		begin := time.Now()
		if err := suite.SetNamespace(suite.Context(b), conn, catalog(b, "set-namespace:v0.4.5")); err != nil {
			b.Fatal(err)
		}
		took := time.Since(begin)
		sys.removeFunctionPods(b, conn)
		return took
	}
	return &contender{name: name, start: start, phases: func() string { return sys.phases(b) }}
}

// removeFunctionPods deletes the pods of the only function, and waits until the system has none.
func (sys *system) removeFunctionPods(b testing.TB, conn *grpc.ClientConn) {
	b.Helper()
	for _, pod := range sys.functionPods(b) {
		remove(b, sys.functions, pod.Name)
	}
	ctx := suite.Context(b)
	for len(pools(b, conn)) > 0 && len(pools(b, conn)[0].GetPods()) > 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			b.Fatalf("the function has pods after its pods were removed: %v", pools(b, conn))
		}
	}
}

// remove deletes a pod and waits until it is gone.
func remove(b testing.TB, namespace, name string) {
	ctx := suite.Context(b)
	if err := s.Client.CoreV1().Pods(namespace).Delete(ctx, name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil {
		b.Fatal(err)
	}
	s.AwaitGone(ctx, b, namespace, name)
}

// phases returns the mean times of the phases of cold starts, by the gateway's metrics.
func (sys *system) phases(b testing.TB) string {
	host, _, err := net.SplitHostPort(sys.gateway)
	if err != nil {
		b.Fatal(err)
	}
	page, err := suite.Metrics(b.Context(), host)
	if err != nil {
		b.Fatal(err)
	}
	const sum, count, label = "fn_phase_duration_seconds_sum{", "fn_phase_duration_seconds_count{", `phase="`
	sums, counts, names := map[string]float64{}, map[string]float64{}, []string{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		_, after, found := strings.Cut(line, label)
		name, rest, _ := strings.Cut(after, `"`)
		value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
		switch {
		case !found || err != nil:
		case strings.HasPrefix(line, sum):
			sums[name] += value
			names = append(names, name)
		case strings.HasPrefix(line, count):
			counts[name] += value
		}
	}
	var mean []string
	for _, name := range slices.Compact(names) {
		mean = append(mean, fmt.Sprintf("%s %.3f", name, sums[name]/counts[name]))
	}
	return strings.Join(mean, ", ")
}
