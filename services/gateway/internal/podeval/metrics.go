// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// metrics are the pod evaluator's metrics of cold starts and retries.
type metrics struct {
	coldStarts metric.Int64Counter
	retries    metric.Int64Counter
	images     imagename.Labels
}

func newMetrics(provider metric.MeterProvider) *metrics {
	meter := provider.Meter("gateway")
	return &metrics{
		coldStarts: telemetry.Must(meter.Int64Counter("fn.cold.starts",
			metric.WithDescription("Leases that waited for a new pod, or whose image was not found. Labels: image, outcome."))),
		retries: telemetry.Must(meter.Int64Counter("fn.retries",
			metric.WithDescription("Evaluations that were tried again on another pod."))),
	}
}

// countLease records the durations of a granted lease's phases, such as queue or pull. The argument unreached is the
// time during which the gateway could reach no pod-manager. countLease adds it to the phase queue. The phases connect
// and resolve are recorded later, because they continue in the gateway.
func (m *metrics) countLease(
	ctx context.Context, req evaluation.Request, granted *lease.Granted, unreached time.Duration,
) {
	queued := unreached
	if granted.GetColdStart() {
		m.coldStart(ctx, m.images.Earn(req.Image), "ok")
	}
	for _, p := range granted.GetPhases() {
		switch took := p.GetDuration().AsDuration(); p.GetPhase() {
		case podmanagerv1.Phase_PHASE_CONNECTING:
		case podmanagerv1.Phase_PHASE_RESOLVING:
			req.Measured.Resolving(took)
		case podmanagerv1.Phase_PHASE_QUEUED:
			queued += took
		default:
			req.Measured.Took(ctx, evalphase.Name(p.GetPhase()), took)
		}
	}
	if queued > 0 {
		req.Measured.Took(ctx, queue, queued)
	}
}

// notLeased records the metrics of a lease that was not granted. It uses the gateway's own measurements in p, because
// the pod-manager reports durations only with a granted lease.
func (m *metrics) notLeased(ctx context.Context, req evaluation.Request, p *progress, err error) {
	queued := p.unanswered
	for step, took := range p.spent {
		switch name := cmp.Or(evalphase.Name(step), queue); {
		case name == queue:
			queued += took
		case step == podmanagerv1.Phase_PHASE_RESOLVING:
			req.Measured.Resolving(took)
		default:
			req.Measured.Took(ctx, name, took)
		}
	}
	req.Measured.Took(ctx, queue, queued)
	if coldStartFailed(p.last.GetPhase(), err) {
		m.coldStart(ctx, m.images.Label(req.Image), fault.Of(err).String())
	}
}

// coldStartFailed reports whether a rejected lease counts as a failed cold start. It returns true if the pod was
// starting, or if err means that no pod can start. For example, the image may be missing. The pod-manager remembers
// missing images, and then rejects further leases at once, even before the first phase.
func coldStartFailed(last podmanagerv1.Phase, err error) bool {
	return isStarting(last) || fault.Of(err) == fault.Precondition
}

func (m *metrics) coldStart(ctx context.Context, image, outcome string) {
	m.coldStarts.Add(ctx, 1, metric.WithAttributes(attribute.String("image", image), attribute.String("outcome", outcome)))
}

// countConnect records the time of connecting to a pod. The argument took is the time that the gateway has measured.
// countConnect adds the time that the pod-manager has reported.
func countConnect(ctx context.Context, req evaluation.Request, granted *lease.Granted, took time.Duration) {
	for _, p := range granted.GetPhases() {
		if p.GetPhase() == podmanagerv1.Phase_PHASE_CONNECTING {
			took += p.GetDuration().AsDuration()
		}
	}
	req.Measured.Took(ctx, "connect", took)
}
