// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/admission"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/measure"
)

// newPhases returns the measure of phases, and has what runs and waits at gate observed.
func newPhases(provider metric.MeterProvider, gate *admission.Gate) (*measure.Phases, error) {
	observe := func(count func() int) metric.Int64ObservableGaugeOption {
		return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(int64(count())); return nil })
	}
	meter := provider.Meter("gateway")
	_, runningErr := meter.Int64ObservableGauge("fn.exec.running", metric.WithDescription("Functions that run as local binaries."), observe(gate.Running))
	_, waitingErr := meter.Int64ObservableGauge("fn.exec.queue.depth", metric.WithDescription("Evaluations that wait to run as local binaries."), observe(gate.Waiting))
	phases, phasesErr := measure.NewPhases(provider)
	if err := errors.Join(runningErr, waitingErr, phasesErr); err != nil {
		return nil, fmt.Errorf("set up the exec evaluator's metrics: %w", err)
	}
	return phases, nil
}
