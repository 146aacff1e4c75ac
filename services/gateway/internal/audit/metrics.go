// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are what a log counts.
type metrics struct{ events metric.Int64Counter }

func newMetrics(provider metric.MeterProvider, queued func() int64) (*metrics, error) {
	meter := provider.Meter("gateway")
	m := &metrics{}
	var errs [2]error
	m.events, errs[0] = meter.Int64Counter("fn.audit.events",
		metric.WithDescription("Events of the audit log: written, failed to be written, or dropped from a full queue or "+
			"after the end."))
	_, errs[1] = meter.Int64ObservableGauge("fn.audit.queued",
		metric.WithDescription("Events of the audit log that are queued."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(queued())
			return nil
		}))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the metrics of the audit log: %w", err)
	}
	return m, nil
}

// begin has all counts begin at zero: one that appears has not increased.
func (m *metrics) begin(ctx context.Context) {
	for _, outcome := range []string{"written", "failed", "dropped"} {
		m.count(ctx, outcome, 0)
	}
}

// count counts n events.
func (m *metrics) count(ctx context.Context, outcome string, n int) {
	m.events.Add(ctx, int64(n), metric.WithAttributes(attribute.String("outcome", outcome)))
}
