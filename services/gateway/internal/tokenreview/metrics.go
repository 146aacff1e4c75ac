// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// The outcomes of reviews.
const (
	valid     = "valid"
	invalid   = "invalid"
	failed    = "error"     // the API could not review the token
	abandoned = "abandoned" // its callers have left
)

// metrics are what a Reviewer counts.
type metrics struct{ reviews metric.Int64Counter }

func newMetrics(provider metric.MeterProvider) (metrics, error) {
	reviews, err := provider.Meter("gateway").Int64Counter("fn.token.reviews",
		metric.WithDescription("Reviews of callers' tokens: valid, invalid, error, or abandoned by their callers."))
	if err != nil {
		return metrics{}, fmt.Errorf("set up the metrics of callers' tokens: %w", err)
	}
	return metrics{reviews: reviews}, nil
}

// count counts a review that ended, and returns its outcome.
func (m metrics) count(ctx context.Context, err error) string {
	outcome := failed
	switch {
	case err == nil:
		outcome = valid
	case fault.Of(err) == fault.Denied:
		outcome = invalid
	case errors.Is(ctx.Err(), context.Canceled):
		outcome = abandoned
	}
	m.reviews.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	return outcome
}
