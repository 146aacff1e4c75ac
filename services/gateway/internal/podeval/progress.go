// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

// progress follows the phases of a lease, such as queue or pull, while the evaluation waits for its pod. It reports
// them as metrics, and as events and child spans of the lease's trace span.
type progress struct {
	ctx      context.Context //nolint:containedctx // contains the lease's span, the parent of the phases' spans
	tracer   trace.Tracer
	span     trace.Span
	measured *evalmetrics.Evaluation
	last     *lease.Waiting // nil before the first report
	phase    trace.Span     // child span of the phase in last, or nil
	since    time.Time      // time when the phase in last began
	// unanswered is the time from the request for a lease to the pod-manager's first report of a phase.
	unanswered time.Duration
	spent      map[podmanagerv1.Phase]time.Duration
}

func newProgress(ctx context.Context, tracer trace.Tracer, measured *evalmetrics.Evaluation) *progress {
	measured.Enter(queue)
	return &progress{
		ctx: ctx, tracer: tracer, span: trace.SpanFromContext(ctx), measured: measured,
		since: time.Now(), spent: make(map[podmanagerv1.Phase]time.Duration),
	}
}

// queue is the name of a lease's phase until the pod-manager reports a phase.
const queue = "queue"

// recordWaiting records the phase of the lease and the reason of the wait, as reported by the pod-manager.
func (p *progress) recordWaiting(w *lease.Waiting) {
	if p.span.IsRecording() {
		for _, name := range eventsBetween(p.last.GetPhase(), w.GetPhase()) {
			p.span.AddEvent(name, trace.WithAttributes(attribute.String("reason", w.GetReason())))
		}
	}
	if p.last == nil || p.last.GetPhase() != w.GetPhase() {
		p.leavePhase()
		p.enterPhase(w)
	}
	p.measured.Waits(w.GetReason())
	p.last = w
}

func (p *progress) enterPhase(w *lease.Waiting) {
	name := cmp.Or(evalphase.Name(w.GetPhase()), queue)
	p.measured.Enter(name)
	if p.span.IsRecording() {
		_, span := p.tracer.Start(p.ctx, "fn.lease."+name, trace.WithAttributes(
			attribute.String("fn.reason", w.GetReason()), attribute.String("k8s.pod.name", w.GetPod())))
		p.phase = span
	}
}

// leavePhase records the duration of the current phase when the lease enters another phase or ends.
func (p *progress) leavePhase() {
	now := time.Now()
	if p.last == nil {
		p.unanswered = now.Sub(p.since)
	} else {
		p.spent[p.last.GetPhase()] += now.Sub(p.since)
	}
	p.since = now
	if p.phase != nil {
		p.phase.End()
		p.phase = nil
	}
}

// endWithError ends the last phase of a lease that was not granted, and records the error in the phase's span.
func (p *progress) endWithError(err error) {
	if p.phase != nil {
		p.phase.SetStatus(codes.Error, fault.Of(err).String())
	}
	p.leavePhase()
}

// timeUnreached returns the total time during which the gateway could reach no pod-manager. Call it after the lease was
// granted or has failed. Before that, the total does not contain the current phase.
func (p *progress) timeUnreached() time.Duration {
	return p.spent[podmanagerv1.Phase_PHASE_UNSPECIFIED]
}

func (p *progress) recordGrant(g *lease.Granted) {
	p.leavePhase()
	if !p.span.IsRecording() {
		return
	}
	for _, name := range eventsBetween(p.last.GetPhase(), phaseGranted) {
		p.span.AddEvent(name)
	}
	p.span.SetAttributes(
		attribute.Bool("faas.coldstart", g.GetColdStart()),
		attribute.String("k8s.pod.name", g.GetPod()),
		attribute.String("k8s.namespace.name", g.GetNamespace()),
		attribute.StringSlice("container.image.repo_digests", []string{repoDigest(g)}),
	)
}
