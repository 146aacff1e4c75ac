// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

type metrics struct {
	certificates metric.Int64Counter
	inStep       metric.Int64Gauge
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	var errs [2]error
	m.certificates, errs[0] = meter.Int64Counter("fn.issuer.certificates",
		metric.WithDescription("Certificates that the issuer issued, by their Secret. Labels: secret."))
	m.inStep, errs[1] = meter.Int64Gauge("fn.issuer.in_step",
		metric.WithDescription("1 if the last renewal of certificates succeeded, or 0."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up metrics of the issuer: %w", err)
	}
	return m, nil
}

func (m *metrics) countCertificate(ctx context.Context, secret string) {
	m.certificates.Add(ctx, 1, metric.WithAttributes(attribute.String("secret", secret)))
}

// recordAttempt records in a metric whether the last attempt to update the Secrets succeeded.
func (m *metrics) recordAttempt(ctx context.Context, ok bool) {
	value := int64(0)
	if ok {
		value = 1
	}
	m.inStep.Record(ctx, value)
}
