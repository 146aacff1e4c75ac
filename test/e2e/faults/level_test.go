// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// level has the amount of everything that could leak, by kind.
type level map[string]int

// exceeds lists the kinds with a larger amount than in another level.
func (l level) exceeds(other level) []string {
	var more []string
	for what, n := range l {
		if n > other[what] {
			more = append(more, fmt.Sprintf("%d %s, before %d", n, what, other[what]))
		}
	}
	return more
}

// least returns the smaller amounts of both levels. The kubelet probes health at any time, and
// informers renew their watches: such connections are absent from some measurements, and leaks from
// none.
func (l level) least(other level) level {
	least := maps.Clone(l)
	for what, n := range other {
		if known, ok := l[what]; !ok || n < known {
			least[what] = n
		}
	}
	return least
}

// between is the time between two measurements. The kernel takes some milliseconds of a processor
// to list a pod's connections, which other tests could need.
const between = 200 * time.Millisecond

// least returns the smallest amount of everything once that does not change any more: a program may
// not have opened yet what it keeps, such as a watch that it tries again every other second.
func (sys *system) least(t *testing.T) (least level) {
	t.Helper()
	ctx := suite.Context(t)
	suite.Until(ctx, t, "the amounts are steady", func() (bool, string) {
		before := least
		least = sys.leastOfAWhile(ctx, t)
		return maps.Equal(before, least), fmt.Sprintf("%v, and then %v", before, least)
	})
	return least
}

// leastOfAWhile returns the smallest amount of everything during a few seconds.
func (sys *system) leastOfAWhile(ctx context.Context, t *testing.T) level {
	t.Helper()
	const looks = 15
	least := sys.level(ctx, t)
	for range looks {
		retry.Sleep(ctx, between)
		least = least.least(sys.level(ctx, t))
	}
	return least
}

// returnsTo waits until no amount exceeds the one from before.
func (sys *system) returnsTo(t *testing.T, before level) {
	t.Helper()
	ctx, after := suite.Context(t), level{}
	for name := range sys.pods {
		suite.Until(ctx, t, name+" runs, which may have been killed", func() (bool, string) {
			_, err := sys.metrics(ctx, name)
			return err == nil, fmt.Sprint(err)
		})
	}
	start, last := time.Now(), "nothing"
	suite.Until(ctx, t, "there is no more of anything than before", func() (bool, string) {
		after = after.least(sys.level(ctx, t))
		more := strings.Join(after.exceeds(before), "; ")
		if more != "" {
			last = more
			retry.Sleep(ctx, between)
		}
		return more == "", more
	})
	t.Logf("after %v there are %v; the last to go: %s", time.Since(start).Round(time.Millisecond), after, last)
}

// The kinds of what programs have.
const (
	goroutines = "goroutines"
	tcp        = "connections"
)

// level measures the current amounts, in Kubernetes and in programs.
func (sys *system) level(ctx context.Context, t testing.TB) level {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(sys.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	services := slices.DeleteFunc(sys.serviceNames(ctx, t, ""), func(name string) bool { return name == sys.abandoned })
	now := level{"function pods": len(pods.Items), "Services": len(services), "active leases": 0, "waiting leases": 0}
	for _, pool := range sys.allPools(ctx, t) {
		now["active leases"] += int(pool.GetActive())
		now["waiting leases"] += int(pool.GetWaiting())
	}
	for name := range sys.pods {
		maps.Copy(now, sys.levelOf(ctx, t, name))
	}
	return now
}

// goroutinesPerConnection is the number of goroutines of an HTTP client for each open connection.
const goroutinesPerConnection = 2

// levelOf measures a program, without what it keeps for registries.
func (sys *system) levelOf(ctx context.Context, t testing.TB, name string) level {
	t.Helper()
	kept, others := connections(t, suite.FindProcess(t, sys.pods[name], suite.ProgramOf(sys.pods[name])).PID)
	return level{
		name + "'s " + goroutines: sys.metric(ctx, t, name, "go_goroutines") - goroutinesPerConnection*kept,
		name + "'s " + tcp:        others,
	}
}

// metric reads a metric of a program.
func (sys *system) metric(ctx context.Context, t testing.TB, name, metric string) int {
	t.Helper()
	page, err := sys.metrics(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	value, ok := suite.Metric(t, page, metric)
	if !ok {
		t.Fatalf("%s has no metric %s", name, metric)
	}
	return int(value)
}

// retries returns how often the gateway has tried evaluations of any function again.
func (sys *system) retries(ctx context.Context, t testing.TB) int64 {
	t.Helper()
	name, _, _ := strings.Cut(sys.calls, ":")
	return suite.Retries(ctx, t, sys.pods[name].Status.PodIP)
}

// metrics returns a program's page of metrics, which is served whatever has happened.
func (sys *system) metrics(ctx context.Context, name string) (string, error) {
	return suite.Metrics(ctx, sys.pods[name].Status.PodIP)
}
