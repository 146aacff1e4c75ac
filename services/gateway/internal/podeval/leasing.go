// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// leasePod requests a lease on a pod from the pod-manager and waits for it. If possible, the pod-manager selects a pod
// that did not fail in an earlier attempt.
func (e *Evaluator) leasePod(ctx context.Context, req evaluation.Request, tried *tries) (lease.Lease, error) {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	image := req.Image.String()
	ctx, span := e.tracer.Start(ctx, "fn.lease", trace.WithAttributes(attribute.String("container.image.name", image)))
	defer span.End()
	open := &lease.Open{Image: image, Attempt: tried.attempts + 1, AvoidPods: slices.Clone(tried.pods)}
	start := time.Now()
	progress := newProgress(ctx, e.tracer, req.Measured)
	held, err := e.cfg.Leases.Lease(ctx, open, progress.recordWaiting)
	if err != nil {
		progress.endWithError(err)
		span.SetStatus(codes.Error, fault.Of(err).String())
		e.metrics.notLeased(ctx, req, progress, err)
		return nil, notLeased(ctx, req.Given, progress.last, time.Since(start), err)
	}
	granted := held.Granted()
	progress.recordGrant(granted)
	e.metrics.countLease(ctx, req, granted, progress.timeUnreached())
	return held, nil
}

// repoDigest returns a leased pod's image as reference@digest. It uses strings.Join, because this function stores the
// text on the heap. The compiler could store the result of the operator + on the stack, because its escape analysis
// does not see that attribute.StringSlice reads the text by reflection.
func repoDigest(g *lease.Granted) string {
	return strings.TrimSuffix(strings.Join([]string{g.GetReference(), g.GetDigest()}, "@"), "@")
}
