// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagelabel"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// metrics are what the manager counts.
type metrics struct {
	mu         sync.Mutex
	rejections map[fault.Class]int64
	evictions  map[string]int64
	// counts are as old as a tick at most.
	counts atomic.Pointer[counts]
	images imagelabel.Labels
}

// counts are how many pods there are, and leases that wait.
type counts struct {
	waiting int
	pods    map[podKind]int
}

// podKind is what pods are counted by.
type podKind struct {
	reference string
	state     pool.PodState
}

// stateNames are the states as the label has them.
var stateNames = map[pool.PodState]string{
	pool.Starting: "starting",
	pool.Ready:    "ready",
	pool.Draining: "draining",
	pool.Failed:   "failed",
	pool.Deleting: "deleting",
}

// instruments are what is read at each export. The loop only counts.
type instruments struct {
	rejections, evictions metric.Int64ObservableCounter
	waiting, pods         metric.Int64ObservableGauge
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{rejections: make(map[fault.Class]int64), evictions: make(map[string]int64)}
	m.counts.Store(&counts{})
	var i instruments
	var errs [5]error
	i.rejections, errs[0] = meter.Int64ObservableCounter("fn.lease.rejections", metric.WithDescription("Leases that were refused. The gateway counts the requests."))
	i.evictions, errs[1] = meter.Int64ObservableCounter("fn.pod.evictions", metric.WithDescription("Function pods that were deleted, and why."))
	i.waiting, errs[2] = meter.Int64ObservableGauge("fn.queue.depth", metric.WithDescription("Leases that wait for a pod."))
	i.pods, errs[3] = meter.Int64ObservableGauge("fn.pods", metric.WithDescription("Function pods."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the pod-manager's metrics: %w", err)
	}
	_, errs[4] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.observeTotals(o, i)
		m.observeCounts(o, i)
		return nil
	}, i.rejections, i.evictions, i.waiting, i.pods)
	if errs[4] != nil {
		return nil, fmt.Errorf("set up the pod-manager's metrics: %w", errs[4])
	}
	return m, nil
}

// observeTotals reports what has been counted since the start.
func (m *metrics) observeTotals(o metric.Observer, i instruments) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for class, n := range m.rejections {
		o.ObserveInt64(i.rejections, n, metric.WithAttributes(attribute.String("reason", class.String())))
	}
	for why, n := range m.evictions {
		o.ObserveInt64(i.evictions, n, metric.WithAttributes(attribute.String("reason", why)))
	}
}

// observeCounts reports what there is. Images that share a label are counted together.
func (m *metrics) observeCounts(o metric.Observer, i instruments) {
	now := m.counts.Load()
	o.ObserveInt64(i.waiting, int64(now.waiting))
	type labels struct{ image, state string }
	sums := make(map[labels]int64)
	for kind, n := range now.pods {
		name, err := imagename.Parse(kind.reference, "")
		if err != nil {
			continue // resolved names are valid
		}
		sums[labels{m.images.Earn(name.Short()), stateNames[kind.state]}] += int64(n)
	}
	for l, n := range sums {
		o.ObserveInt64(i.pods, n, metric.WithAttributes(attribute.String("image", l.image), attribute.String("state", l.state)))
	}
}

// rejected counts a lease that was refused.
func (m *metrics) rejected(class fault.Class) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rejections[class]++
}

// evicted counts a pod that is deleted.
func (m *metrics) evicted(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evictions[why]++
}
