// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// lease waits for a lease on a pod other than the broken ones.
func (e *Evaluator) lease(ctx context.Context, req evaluation.Request, broken []string) (lease.Lease, error) {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	image := req.Image.String()
	ctx, span := e.tracer.Start(ctx, "fn.lease", trace.WithAttributes(attribute.String("container.image.name", image)))
	defer span.End()
	open := &lease.Open{Image: image, Attempt: int32(len(broken) + 1), AvoidPods: broken} //nolint:gosec // a few retries
	start := time.Now()
	progress := &progress{span: span}
	held, err := e.cfg.Leases.Lease(ctx, open, progress.waiting)
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
		e.metrics.notLeased(ctx, req, progress.last, err)
		return nil, notLeased(ctx, req.Given, progress.last, time.Since(start), err)
	}
	granted := held.Granted()
	progress.granted(granted)
	e.metrics.leased(ctx, req, granted)
	return held, nil
}

// progress records on a span what a lease waits for.
type progress struct {
	span trace.Span
	last *lease.Waiting // nil before the first
}

// waiting takes what the lease waits for now.
func (p *progress) waiting(w *lease.Waiting) {
	if p.span.IsRecording() {
		for _, name := range events(p.last.GetPhase(), w.GetPhase()) {
			p.span.AddEvent(name, trace.WithAttributes(attribute.String("reason", w.GetReason())))
		}
	}
	p.last = w
}

// granted takes what the lease led to.
func (p *progress) granted(g *lease.Granted) {
	if !p.span.IsRecording() {
		return
	}
	for _, name := range events(p.last.GetPhase(), phaseGranted) {
		p.span.AddEvent(name)
	}
	p.span.SetAttributes(
		attribute.Bool("faas.coldstart", g.GetColdStart()),
		attribute.String("k8s.pod.name", g.GetPod()),
		attribute.String("k8s.namespace.name", g.GetNamespace()),
		repoDigests(g),
	)
}

// repoDigests returns the image that a pod runs. StringSlice hides from the compiler
// that it keeps the text (reflect.Copy), which must not be on our stack therefore:
// what Join returns is not.
func repoDigests(g *lease.Granted) attribute.KeyValue {
	image := strings.Join([]string{g.GetReference(), g.GetDigest()}, "@")
	return attribute.StringSlice("container.image.repo_digests", []string{image})
}
