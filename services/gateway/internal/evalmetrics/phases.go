// SPDX-License-Identifier: Apache-2.0

// Package evalmetrics records the progress of evaluations, and contains the metrics that all evaluators share.
package evalmetrics

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/phase"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Seconds are the histogram buckets for durations, in seconds.
var Seconds = metric.WithExplicitBucketBoundaries(telemetry.Seconds...)

// Phases is the metric for the durations of phases of evaluations, such as queue, pull and run.
type Phases struct {
	seconds metric.Float64Histogram
	options map[string]metric.MeasurementOption
}

// NewPhases returns the metric fn.phase.duration, a histogram with the label phase.
func NewPhases(provider metric.MeterProvider) *Phases {
	meter := provider.Meter("gateway")
	seconds := telemetry.Must(meter.Float64Histogram("fn.phase.duration", metric.WithUnit("s"), Seconds,
		metric.WithDescription(
			"Duration of a phase of an evaluation: resolve, queue, create, schedule, pull, start, connect or run. "+
				"Labels: phase.")))
	p := &Phases{seconds: seconds, options: make(map[string]metric.MeasurementOption, len(phase.Names))}
	for _, name := range phase.Names {
		p.options[name] = metric.WithAttributeSet(attribute.NewSet(attribute.String("phase", name)))
	}
	return p
}

// Took records d as the duration of the phase with the given name. Names that are not in phase.Names are ignored.
func (p *Phases) Took(ctx context.Context, name string, d time.Duration) {
	if option, ok := p.options[name]; ok {
		p.seconds.Record(ctx, d.Seconds(), option)
	}
}
