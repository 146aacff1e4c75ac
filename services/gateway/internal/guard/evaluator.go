// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
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
	if e.Name() != evaluatorExec && e.guard.cfg.Resolver != nil && p.NeedsDigest(facts) {
		if err := e.guard.resolve(ctx, &req, &facts); err != nil {
			return evaluation.Response{}, err
		}
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

// evaluatorExec is the evaluator whose functions have no digest of their own: the one of the image's name counts.
const evaluatorExec = "exec"

// resolve finds the digests of a request's image. The function runs with this digest or not at all.
func (g *Guard) resolve(ctx context.Context, req *evaluation.Request, facts *policy.Facts) error {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	image := &imageresolverv1.ResolveImageRequest{Image: req.Image.String()}
	resolved, err := g.cfg.Resolver.ResolveImage(ctx, image)
	if err == nil {
		req.Digest = resolved.GetDigest()
		facts.Digest, facts.IndexDigest = req.Digest, resolved.GetIndexDigest()
		return nil
	}
	err = fmt.Errorf("find the digest of %s for the policy: %w", req.Given, rpcfault.FromConnect(err))
	if fault.Of(err) == fault.NotFound {
		return fault.New(fault.Precondition, "%w", err)
	}
	return err
}
