// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

// observeGate registers gauges of the running evaluations, and of the evaluations that wait for a process.
func observeGate(provider metric.MeterProvider, gate *admission.Gate) error {
	meter := provider.Meter("gateway")
	observed := func(count func() int) metric.Int64ObservableGaugeOption {
		return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(count()))
			return nil
		})
	}
	_, runningErr := meter.Int64ObservableGauge("fn.exec.running",
		metric.WithDescription("Evaluations that run as local binaries."), observed(gate.Running))
	_, waitingErr := meter.Int64ObservableGauge("fn.exec.queue.depth",
		metric.WithDescription("Evaluations that are queued to run as local binaries."), observed(gate.Waiting))
	if err := errors.Join(runningErr, waitingErr); err != nil {
		return fmt.Errorf("set up the exec evaluator's metrics: %w", err)
	}
	return nil
}
