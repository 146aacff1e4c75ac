// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// metrics contains the manager's counters and gauges.
type metrics struct {
	rejections metric.Int64Counter
	creations  metric.Int64Counter
	// counts contains the numbers of functions and pods, updated every second.
	counts atomic.Pointer[pool.Counts]
	// waiting is the number of leases that are not granted yet, including leases that wait for the Kubernetes API or the
	// image-resolver.
	waiting atomic.Int64
	images  imagename.Labels
}

func newMetrics(meter metric.Meter) *metrics {
	m := &metrics{
		rejections: telemetry.Must(meter.Int64Counter("fn.lease.rejections",
			metric.WithDescription("Leases that were rejected. Labels: reason."))),
		creations: telemetry.Must(meter.Int64Counter("fn.pod.creations",
			metric.WithDescription(
				"Function pods that were created: for leases that wait or share a pod, to keep a minimum, or to replace "+
					"pods of another version. Labels: reason."))),
	}
	m.counts.Store(&pool.Counts{})
	waiting := telemetry.Must(meter.Int64ObservableGauge("fn.queue.depth",
		metric.WithDescription(
			"Leases that were not granted yet, whatever they wait for, including the Kubernetes API and "+
				"registries.")))
	pods := telemetry.Must(meter.Int64ObservableGauge("fn.pods",
		metric.WithDescription("Function pods. Each replica reports all of them. Labels: image, state.")))
	owned := telemetry.Must(meter.Int64ObservableGauge("fn.functions.owned",
		metric.WithDescription("Functions with pods or leases that this replica owns.")))
	outdated := telemetry.Must(meter.Int64ObservableGauge("fn.pods.outdated", metric.WithDescription(
		"Outdated pods of functions in use that this replica owns, which serve until new pods are ready.")))
	takeovers := telemetry.Must(meter.Int64ObservableCounter("fn.takeovers",
		metric.WithDescription("Functions with pods that this replica took over from other replicas.")))
	telemetry.Must(meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(waiting, m.waiting.Load())
		m.observePods(o, pods)
		now := m.counts.Load()
		o.ObserveInt64(owned, int64(now.Owned))
		o.ObserveInt64(outdated, int64(now.Outdated))
		o.ObserveInt64(takeovers, now.Takeovers)
		return nil
	}, waiting, pods, owned, outdated, takeovers))
	return m
}

// observePods exports the numbers of pods as a metric. It sums up the numbers for images with equal labels.
func (m *metrics) observePods(o metric.Observer, pods metric.Int64Observable) {
	type labels struct{ image, state string }
	sums := make(map[labels]int64)
	for kind, count := range m.counts.Load().Pods {
		name, err := imagename.Parse(kind.Function.Reference, "")
		if err != nil {
			continue // cannot happen: resolved names are valid
		}
		sums[labels{m.images.Earn(name), stateName(kind.State)}] += int64(count)
	}
	for l, n := range sums {
		attributes := metric.WithAttributes(attribute.String("image", l.image), attribute.String("state", l.state))
		o.ObserveInt64(pods, n, attributes)
	}
}

// stateName returns the value of the metric label for the state of a pod, such as "ready".
func stateName(s podmanagerv1.Pod_State) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))
}
