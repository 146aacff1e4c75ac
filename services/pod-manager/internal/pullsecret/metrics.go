// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type metrics struct {
	writes metric.Int64Counter
	inStep metric.Int64Gauge
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	var errs [2]error
	m.writes, errs[0] = meter.Int64Counter("fn.pull_secret.writes",
		metric.WithDescription("Writes of the pull secret. Labels: outcome."))
	m.inStep, errs[1] = meter.Int64Gauge("fn.pull_secret.in_step",
		metric.WithDescription(
			"1 while the pull secret matches its file, 0 while it or the file cannot be read or written."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up metrics of the pull secret: %w", err)
	}
	return m, nil
}

// countWrite counts an attempt to write the pull secret, with its outcome.
func (m *metrics) countWrite(ctx context.Context, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(apierrors.ReasonForError(err))
	}
	m.writes.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// recordAttempt records in a metric whether the last attempt to update the pull secret succeeded.
func (m *metrics) recordAttempt(ctx context.Context, ok bool) {
	value := int64(0)
	if ok {
		value = 1
	}
	m.inStep.Record(ctx, value)
}
