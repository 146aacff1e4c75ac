// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

// Local runs functions as processes of this machine, with or without sandboxes. It limits the number of concurrent
// evaluations, and shares the available slots fairly between functions and callers.
type Local struct {
	*function.Service
	// Gate decides which evaluation gets a free slot.
	Gate *admission.Gate
}

// NewLocal returns a Local. queue is the maximum number of evaluations that wait for a free process slot. Callers
// must run the method Maintain in the background.
func NewLocal(cfg function.ServiceConfig, queue int) (*Local, error) {
	service, err := function.NewService(cfg)
	if err != nil {
		return nil, err
	}
	gate := admission.New(admission.ForEvaluations(cfg.Slots(), queue))
	return &Local{Service: service, Gate: gate}, nil
}

// Evaluate runs the command of a request's function as soon as a slot is free. The argument own is the function's own
// time limit. Its time begins when the function starts. If own contains no limit, the request's limit applies. If the
// queue is full, the error has the class fault.Exhausted and tells the client when to retry.
func (l *Local) Evaluate(
	ctx context.Context, req Request, command fnproc.Command, own function.TimeLimit,
) (Response, error) {
	req.Measured.Attempt()
	req.Measured.Enter("queue")
	req.Measured.WaitsNow("other evaluations occupy all process slots")
	release, err := l.acquireSlot(ctx, req, command.Function())
	if err != nil {
		return Response{}, err
	}
	defer release()
	req.Measured.Enter("run")
	limit := req.Limit
	if own.For > 0 {
		limit = function.NewTimeLimit(own.For, own.Setting)
	}
	start := time.Now()
	result, err := l.Run(ctx, function.Evaluation{
		Image: req.Given, Command: command, ResourceList: req.ResourceList, Limit: limit,
	})
	req.Measured.Took(ctx, "run", time.Since(start))
	return Response{ResourceList: result.ResourceList, Log: result.Log, Results: result.Results}, err
}

// acquireSlot waits for a slot until the request's time limit is exceeded or ctx ends.
func (l *Local) acquireSlot(ctx context.Context, req Request, function string) (release func(), err error) {
	limited, cancel := req.Limit.Context(ctx)
	defer cancel()
	start := time.Now()
	release, err = l.Gate.Acquire(limited, admission.Claim{Function: function, Caller: req.Caller})
	waited := time.Since(start)
	req.Measured.Took(ctx, "queue", waited)
	return release, explainNoSlot(err, req.Given, waited)
}

// explainNoSlot adds the image and the waiting time to the error of an evaluation that got no slot.
func explainNoSlot(err error, image string, waited time.Duration) error {
	switch {
	case err == nil:
		return nil
	case fault.Of(err) == fault.DeadlineExceeded, fault.Of(err) == fault.Canceled:
		return function.Interrupted(err, image, waited, "waiting for a free slot")
	default:
		return fmt.Errorf(function.NamePrefix+"%w", image, err)
	}
}
