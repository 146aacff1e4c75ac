// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// observe measures how many evaluations run and wait in service.
func observe(provider metric.MeterProvider, service *function.Service) error {
	meter := provider.Meter("gateway")
	gauge := func(name, description string, count func() int) error {
		_, err := meter.Int64ObservableGauge(name, metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(int64(count()))
				return nil
			}))
		return err
	}
	err := errors.Join(
		gauge("fn.exec.running", "Functions that run as local binaries.", service.Running),
		gauge("fn.exec.queue.depth", "Evaluations that wait to run as local binaries.", service.Waiting))
	if err != nil {
		return fmt.Errorf("set up the exec evaluator's metrics: %w", err)
	}
	return nil
}
