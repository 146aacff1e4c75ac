// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// server is an evaluator that serves some images only.
type server interface {
	Serves(image imagename.Name) bool
}

// guarded is an evaluator that evaluates what the policy allows.
type guarded struct {
	evaluation.Evaluator
	guard *Guard
}

// Wrap returns e, which evaluates only what the policy allows from then on.
func (g *Guard) Wrap(e evaluation.Evaluator) evaluation.Evaluator { return guarded{e, g} }

// Evaluate implements evaluation.Evaluator.
func (e guarded) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	if s, ok := e.Evaluator.(server); ok && !s.Serves(req.Image) {
		return evaluation.Response{}, fault.New(fault.NotFound, "the %s evaluator does not serve %s", e.Name(), req.Image)
	}
	p := e.guard.policy.Load()
	facts := policy.Facts{
		Caller: caller.From(ctx), Address: req.Caller, Image: req.Image,
		Operation: policy.Evaluate, Evaluator: e.Name(), InputBytes: int64(len(req.ResourceList)),
	}
	var err error
	if e.Name() != policy.Exec { // a local binary has no digest of its own: the one of the image's name counts
		err = e.guard.complete(ctx, p, &req, &facts)
	}
	req.Measured.Signed(facts.Signers) // as this evaluator takes the image: not those of an earlier one
	if err != nil {
		return evaluation.Response{}, err
	}
	d := p.Decide(facts)
	e.guard.metrics.decided(ctx, d)
	if !d.Allow {
		what := fmt.Sprintf("function %q", req.Given)
		return evaluation.Response{}, &evaluation.PassedOverError{Reason: denied(what, d)}
	}
	req.Measured.Decided(d.Rule)
	release, err := e.guard.limits.admit(d)
	if err != nil {
		e.guard.metrics.limited(ctx, d)
		return evaluation.Response{}, fmt.Errorf("function %q: %w", req.Given, err)
	}
	defer release()
	req.Network = d.Limits.Network
	limit := function.NewTimeLimit(d.Limits.EvaluationTime,
		fmt.Sprintf("limits.evaluationTime of rule %s in %s", d.Rule, e.guard.cfg.File))
	ctx, cancel := limit.Context(ctx)
	defer cancel()
	if limit.For > 0 && (req.Limit.For <= 0 || limit.Until.Before(req.Limit.Until)) {
		req.Limit = limit
	}
	return e.Evaluator.Evaluate(ctx, req)
}
