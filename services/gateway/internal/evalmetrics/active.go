// SPDX-License-Identifier: Apache-2.0

package evalmetrics

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/phase"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Active counts the running evaluations in each phase, and stores the reasons of current waits. [Phases], in
// contrast, records the duration of a phase only when the phase ends.
type Active struct {
	phases map[string]*atomic.Int64

	mu      sync.Mutex
	waiting map[*Evaluation]wait
}

// NewActive returns an Active without evaluations. It registers the gauge of running evaluations in provider.
func NewActive(provider metric.MeterProvider) *Active {
	a := &Active{phases: make(map[string]*atomic.Int64, len(phase.Names)), waiting: make(map[*Evaluation]wait)}
	labels := make(map[string]metric.MeasurementOption, len(phase.Names))
	for _, name := range phase.Names {
		a.phases[name] = new(atomic.Int64)
		labels[name] = metric.WithAttributeSet(attribute.NewSet(attribute.String("phase", name)))
	}
	telemetry.Must(provider.Meter("gateway").Int64ObservableGauge("fn.evaluations.active",
		metric.WithDescription("Running evaluations by their current phase. Labels: phase."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for name, count := range a.phases {
				o.Observe(count.Load(), labels[name])
			}
			return nil
		})))
	return a
}

// Begin starts to record an evaluation of the image. The evaluation is not counted before its first phase.
func (a *Active) Begin(image string) *Evaluation {
	return &Evaluation{active: a, image: image, began: time.Now(), steps: make([]Step, 0, 4)}
}

// Counts returns the number of running evaluations in each phase. It omits phases without evaluations.
func (a *Active) Counts() map[string]int32 {
	counts := map[string]int32{}
	for name, count := range a.phases {
		if n := count.Load(); n > 0 {
			counts[name] = int32(min(n, math.MaxInt32)) //nolint:gosec // bounded here
		}
	}
	return counts
}

// changePhase counts an evaluation in a new phase instead of e.phase. Only phases in phase.Names are counted.
func (a *Active) changePhase(e *Evaluation, to string) {
	if a == nil {
		return
	}
	if count, ok := a.phases[e.phase]; ok {
		count.Add(-1)
	}
	if count, ok := a.phases[to]; ok {
		count.Add(1)
	}
	a.recordWait(e, to, "")
}
