// SPDX-License-Identifier: Apache-2.0

// Package evalmetrics records the progress of evaluations, and contains the metrics that all evaluators share.
package evalmetrics

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Seconds are the histogram buckets for durations, in seconds.
var Seconds = metric.WithExplicitBucketBoundaries(telemetry.Seconds...)

// Active counts the running evaluations in each phase, measures the phases' durations, and stores the reasons of
// current waits.
type Active struct {
	phases  map[string]*running // running evaluations of each phase, by the phase's name
	seconds metric.Float64Histogram

	mu      sync.Mutex
	waiting map[*Evaluation]wait
}

// running counts the evaluations in a phase.
type running struct {
	count atomic.Int64
	label metric.MeasurementOption // metric label with the phase's name
}

// NewActive returns an Active without evaluations. It registers the metrics of evaluation phases in provider.
func NewActive(provider metric.MeterProvider) *Active {
	meter := provider.Meter("gateway")
	a := &Active{
		phases: make(map[string]*running, len(evalphase.Names)), waiting: make(map[*Evaluation]wait),
		seconds: telemetry.Must(meter.Float64Histogram("fn.phase.duration", metric.WithUnit("s"), Seconds,
			metric.WithDescription(
				"Duration of a phase of an evaluation: resolve, queue, create, schedule, pull, start, connect or run. "+
					"Labels: phase."))),
	}
	for _, name := range evalphase.Names {
		a.phases[name] = &running{label: metric.WithAttributeSet(attribute.NewSet(attribute.String("phase", name)))}
	}
	telemetry.Must(meter.Int64ObservableGauge("fn.evaluations.active",
		metric.WithDescription("Running evaluations by their current phase. Labels: phase."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, p := range a.phases {
				o.Observe(p.count.Load(), p.label)
			}
			return nil
		})))
	return a
}

// Begin starts to record an evaluation. The evaluation is not counted before its first phase.
func (a *Active) Begin(image string) *Evaluation {
	return &Evaluation{active: a, image: image, began: time.Now(), steps: make([]Step, 0, 4)}
}

// Counts returns the number of running evaluations in each phase. It omits phases without evaluations.
func (a *Active) Counts() map[string]int32 {
	counts := map[string]int32{}
	for name, p := range a.phases {
		if n := p.count.Load(); n > 0 {
			counts[name] = int32(min(n, math.MaxInt32)) //nolint:gosec // bounded here
		}
	}
	return counts
}

// changePhase moves an evaluation to its next phase in the counts. Phases outside evalphase.Names are not counted.
func (a *Active) changePhase(e *Evaluation, to string) {
	if p, ok := a.phases[e.phase]; ok {
		p.count.Add(-1)
	}
	if p, ok := a.phases[to]; ok {
		p.count.Add(1)
	}
	a.recordWait(e, to, "")
}
