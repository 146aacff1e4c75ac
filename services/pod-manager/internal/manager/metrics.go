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

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// metrics are what the manager counts.
type metrics struct {
	rejections, evictions tally
	// counts are as old as a tick at most.
	counts atomic.Pointer[counts]
	images telemetry.ImageLabels
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

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	m.counts.Store(&counts{})
	var rejections, evictions metric.Int64ObservableCounter
	var waiting, pods metric.Int64ObservableGauge
	var errs [5]error
	rejections, errs[0] = meter.Int64ObservableCounter("fn.lease.rejections",
		metric.WithDescription("Leases that were refused. The gateway counts the requests."))
	evictions, errs[1] = meter.Int64ObservableCounter("fn.pod.evictions",
		metric.WithDescription("Function pods that were deleted, and why."))
	waiting, errs[2] = meter.Int64ObservableGauge("fn.queue.depth",
		metric.WithDescription("Leases that wait for a pod."))
	pods, errs[3] = meter.Int64ObservableGauge("fn.pods", metric.WithDescription("Function pods."))
	_, errs[4] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.rejections.observe(o, rejections)
		m.evictions.observe(o, evictions)
		m.observe(o, waiting, pods)
		return nil
	}, rejections, evictions, waiting, pods)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the pod-manager's metrics: %w", err)
	}
	return m, nil
}

// observe reports what there is. Images that share a label are counted together.
func (m *metrics) observe(o metric.Observer, waiting, pods metric.Int64Observable) {
	now := m.counts.Load()
	o.ObserveInt64(waiting, int64(now.waiting))
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
		attributes := metric.WithAttributes(attribute.String("image", l.image), attribute.String("state", l.state))
		o.ObserveInt64(pods, n, attributes)
	}
}

// tally counts by reason. It is read at each export, since the loop has no context to count with.
type tally struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (t *tally) add(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int64)
	}
	t.counts[reason]++
}

func (t *tally) observe(o metric.Observer, counter metric.Int64Observable) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for reason, n := range t.counts {
		o.ObserveInt64(counter, n, metric.WithAttributes(attribute.String("reason", reason)))
	}
}
