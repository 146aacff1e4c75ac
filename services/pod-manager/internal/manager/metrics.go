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
	rejections, evictions, creations tally
	// counts are as old as a tick at most.
	counts atomic.Pointer[counts]
	waits  waits
	images telemetry.ImageLabels
}

// counts are how many pods there are, and functions.
type counts struct {
	owned     int
	outdated  int
	takeovers int64
	pods      []podCount
}

// podCount is how many pods of a function are in a state.
type podCount struct {
	reference string
	state     pool.PodState
	pods      int
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
	var rejections, evictions, creations metric.Int64ObservableCounter
	var waiting, phases, pods, owned, outdated metric.Int64ObservableGauge
	var takeovers metric.Int64ObservableCounter
	var errs [10]error
	rejections, errs[0] = meter.Int64ObservableCounter("fn.lease.rejections",
		metric.WithDescription("Leases that were rejected. The gateway counts the requests."))
	evictions, errs[1] = meter.Int64ObservableCounter("fn.pod.evictions",
		metric.WithDescription("Function pods that were deleted, and why."))
	creations, errs[8] = meter.Int64ObservableCounter("fn.pod.creations",
		metric.WithDescription("Function pods that were created, and why: for leases, a minimum or a new version."))
	waiting, errs[2] = meter.Int64ObservableGauge("fn.queue.depth",
		metric.WithDescription("Leases that were not granted yet, whatever they wait for."))
	phases, errs[7] = meter.Int64ObservableGauge("fn.leases.waiting",
		metric.WithDescription("Leases that were not granted yet, by the phase that they are in."))
	pods, errs[3] = meter.Int64ObservableGauge("fn.pods", metric.WithDescription("Function pods."))
	owned, errs[5] = meter.Int64ObservableGauge("fn.functions.owned",
		metric.WithDescription("Functions that this replica owns."))
	outdated, errs[9] = meter.Int64ObservableGauge("fn.pods.outdated", metric.WithDescription(
		"Function pods of another template or with other settings, which serve until new ones are ready."))
	takeovers, errs[6] = meter.Int64ObservableCounter("fn.takeovers",
		metric.WithDescription("Functions with pods that this replica took over from others."))
	_, errs[4] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.rejections.observe(o, rejections)
		m.evictions.observe(o, evictions)
		m.creations.observe(o, creations)
		m.waits.observe(o, waiting, phases)
		m.observe(o, pods)
		now := m.counts.Load()
		o.ObserveInt64(owned, int64(now.owned))
		o.ObserveInt64(outdated, int64(now.outdated))
		o.ObserveInt64(takeovers, now.takeovers)
		return nil
	}, rejections, evictions, creations, waiting, phases, pods, owned, outdated, takeovers)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the pod-manager's metrics: %w", err)
	}
	return m, nil
}

// observe reports the pods that there are. Images that share a label are counted together.
func (m *metrics) observe(o metric.Observer, pods metric.Int64Observable) {
	now := m.counts.Load()
	type labels struct{ image, state string }
	sums := make(map[labels]int64)
	for _, count := range now.pods {
		name, err := imagename.Parse(count.reference, "")
		if err != nil {
			continue // resolved names are valid
		}
		sums[labels{m.images.Earn(name), stateNames[count.state]}] += int64(count.pods)
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
