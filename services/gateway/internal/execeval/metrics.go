// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

// observeGate registers gauges of the running evaluations, and of the evaluations that wait for a process.
func observeGate(provider metric.MeterProvider, gate *admission.Gate) {
	meter := provider.Meter("gateway")
	telemetry.Must(meter.Int64ObservableGauge("fn.exec.running",
		metric.WithDescription("Evaluations that run as local binaries."), telemetry.Observe(gate.Running)))
	telemetry.Must(meter.Int64ObservableGauge("fn.exec.queue.depth",
		metric.WithDescription("Evaluations that are queued to run as local binaries."), telemetry.Observe(gate.Waiting)))
}
