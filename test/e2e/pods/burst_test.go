// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// burstCallers call at the same moment, over so many connections.
	burstCallers, burstConnections = 100, 10
	// burstGoal is what the 99th percentile should take at most beside the share of the machine, over a cold start.
	burstGoal = 1.5
)

// BenchmarkBurst has many callers at the same moment ask for a function that has no pod, and compares that with the
// cold start of one caller, beside the time in which the machine runs as many bare processes. All callers have to
// succeed.
func BenchmarkBurst(b *testing.B) {
	one, all := coldStart(b, "one caller", nil), newBurst(b)
	share := &contender{name: "bare processes", start: func() time.Duration { return bareProcesses(b, burstCallers) }}
	contenders := []*contender{one, share, {name: "burst", start: all.start}}
	takeTurns(contenders) // pulls the images to the node
	for _, c := range contenders {
		c.times = nil
	}
	all.latencies = nil
	for b.Loop() {
		takeTurns(contenders)
	}
	all.report(b, one.median(), share.median())
	b.ReportMetric(0, "ns/op")
}

// burst is a system whose only function is called by many callers at the same moment.
type burst struct {
	b           *testing.B
	sys         *system
	connections []*grpc.ClientConn

	mu        sync.Mutex
	latencies []time.Duration
	failed    int
}

func newBurst(b *testing.B) *burst {
	b.Helper()
	all := &burst{b: b, sys: microservices(b, nil)}
	for range burstConnections {
		all.connections = append(all.connections, all.sys.connect(b))
	}
	return all
}

// start evaluates once by each caller, and returns how long all took. The pods are removed before it returns.
func (all *burst) start() time.Duration {
	ctx, image := suite.Context(all.b), catalog(all.b, "set-namespace:v0.4.5")
	begin := time.Now()
	var calling sync.WaitGroup
	for i := range burstCallers {
		calling.Go(func() {
			err := suite.SetNamespace(ctx, all.connections[i%burstConnections], image)
			took := time.Since(begin)
			all.mu.Lock()
			defer all.mu.Unlock()
			if all.latencies = append(all.latencies, took); err != nil {
				all.failed++
				all.b.Errorf("caller %d, after %v: %v", i, took, err)
			}
		})
	}
	calling.Wait()
	took := time.Since(begin)
	all.sys.removeFunctionPods(all.b, all.connections[0])
	return took
}

// report prints the 99th percentile of all callers, beside a cold start and the share of the machine.
func (all *burst) report(b *testing.B, cold, share time.Duration) {
	b.Helper()
	slices.Sort(all.latencies)
	p50, p99 := all.latencies[len(all.latencies)/2], all.latencies[len(all.latencies)*99/100]
	ratio := float64(p99-share) / float64(cold)
	rounded := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	table := newTable("callers", "cold start of one", "as many bare processes", "p50", "p99",
		"p99 without these, over a cold start", "goal", "failed")
	table.row(strconv.Itoa(burstCallers), rounded(cold), rounded(share), rounded(p50), rounded(p99),
		fmt.Sprintf("%.2f", ratio), fmt.Sprint(burstGoal), fmt.Sprintf("%d of %d", all.failed, len(all.latencies)))
	publish(b, "burst", table.String())
	b.ReportMetric(ratio, "burst-ratio")
}

// bareProcesses returns how long the machine takes to run a function's program so many times.
func bareProcesses(b *testing.B, n int) time.Duration {
	b.Helper()
	path, left := program(b, "set-namespace"), make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	close(left)
	begin := time.Now()
	var running sync.WaitGroup
	for range runtime.NumCPU() {
		running.Go(func() {
			for range left {
				cmd := exec.CommandContext(b.Context(), path)
				cmd.Stdin = bytes.NewReader([]byte(suite.List))
				if _, err := cmd.Output(); err != nil {
					b.Errorf("bare process: %v", err)
				}
			}
		})
	}
	running.Wait()
	return time.Since(begin)
}
