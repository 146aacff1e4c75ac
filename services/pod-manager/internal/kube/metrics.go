package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// metrics are what is counted about the Kubernetes API.
type metrics struct {
	actions  metric.Float64Histogram
	failures metric.Int64Counter
}

func newMetrics(provider metric.MeterProvider) (*metrics, error) {
	meter := provider.Meter("pod-manager/kube")
	m := &metrics{}
	var errs [2]error
	m.actions, errs[0] = meter.Float64Histogram("fn.kube.action.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that an action on a function pod takes, with all attempts."))
	m.failures, errs[1] = meter.Int64Counter("fn.kube.watch.failures", metric.WithDescription("Watches that broke."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up metrics of the Kubernetes API: %w", err)
	}
	return m, nil
}

// did measures an action.
func (m *metrics) did(ctx context.Context, action string, start time.Time, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(apierrors.ReasonForError(err))
	}
	m.actions.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(
		attribute.String("action", action), attribute.String("outcome", outcome)))
}

func (m *metrics) watchFailed(ctx context.Context) { m.failures.Add(ctx, 1) }
