// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// metrics are what a guard counts.
type metrics struct {
	decisions metric.Int64Counter
	failures  metric.Int64Counter
	// inForce reports whether the file is in force as it is now.
	inForce atomic.Bool
	// labels are the names of rules, of which a bounded number has a label.
	labels telemetry.ImageLabels
}

func newMetrics(provider metric.MeterProvider, rules func() int64) (*metrics, error) {
	meter := provider.Meter("gateway")
	m := &metrics{}
	var errs [4]error
	m.decisions, errs[0] = meter.Int64Counter("fn.policy.decisions",
		metric.WithDescription("What rules of the policy decided: allow, deny, or limit for calls past a limit."))
	m.failures, errs[1] = meter.Int64Counter("fn.policy.failures",
		metric.WithDescription("Changes of the policy's file that could not be put in force."))
	_, errs[2] = meter.Int64ObservableGauge("fn.policy.in.force",
		metric.WithDescription("1 while the policy in force is that of its file, 0 while the file is broken or gone."),
		gauge(func() int64 {
			if m.inForce.Load() {
				return 1
			}
			return 0
		}))
	_, errs[3] = meter.Int64ObservableGauge("fn.policy.rules",
		metric.WithDescription("Rules in force, those of lists included."), gauge(rules))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the policy's metrics: %w", err)
	}
	return m, nil
}

func gauge(value func() int64) metric.Int64ObservableGaugeOption {
	return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(value())
		return nil
	})
}

// decided counts a decision.
func (m *metrics) decided(ctx context.Context, d policy.Decision) {
	decision := "deny"
	if d.Allow {
		decision = "allow"
	}
	m.count(ctx, d, decision)
}

// limited counts a call past a limit, which was counted as allowed.
func (m *metrics) limited(ctx context.Context, d policy.Decision) { m.count(ctx, d, "limit") }

func (m *metrics) count(ctx context.Context, d policy.Decision, decision string) {
	m.decisions.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("rule", m.labels.Earn(d.Rule)), attribute.String("decision", decision))))
}
