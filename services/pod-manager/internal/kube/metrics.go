// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// metrics contains the metrics of requests to the Kubernetes API.
type metrics struct {
	actions         metric.Float64Histogram
	evictions       metric.Int64Counter
	failures        metric.Int64Counter
	brokenTemplates metric.Int64Counter
}

func newMetrics(provider metric.MeterProvider) *metrics {
	meter := provider.Meter("pod-manager/kube")
	return &metrics{
		actions: telemetry.Must(meter.Float64Histogram("fn.kube.action.duration", metric.WithUnit("s"),
			metric.WithExplicitBucketBoundaries(telemetry.Seconds...),
			metric.WithDescription("Duration of an action on a function pod, with all attempts. Labels: action, outcome."))),
		failures: telemetry.Must(meter.Int64Counter("fn.kube.watch.failures",
			metric.WithDescription("Failed attempts to list or watch objects. Labels: view."))),
		brokenTemplates: telemetry.Must(meter.Int64Counter("fn.kube.template.failures",
			metric.WithDescription("Pod templates, of a ConfigMap or Porch's, that could not be used."))),
		evictions: telemetry.Must(meter.Int64Counter("fn.pod.evictions",
			metric.WithDescription("Function pods that were deleted. Labels: reason."))),
	}
}

// recordAction records the duration and the outcome of an action.
func (m *metrics) recordAction(ctx context.Context, action string, start time.Time, err error) {
	m.actions.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(
		attribute.String("action", action), attribute.String("outcome", kubeclient.Outcome(err))))
}

func (m *metrics) podDeleted(ctx context.Context, reason string) {
	m.evictions.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

func (m *metrics) watchFailed(ctx context.Context, resource string) {
	m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("view", resource)))
}

func (m *metrics) templateFailed(ctx context.Context) { m.brokenTemplates.Add(ctx, 1) }
