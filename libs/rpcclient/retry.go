// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// retryFor is how long a service may be unreachable before a call fails. A single
	// replica that restarts is back by then, and a busy node has learned its Service's
	// endpoints.
	retryFor = 15 * time.Second
	// firstWait is the wait after the first call that did not reach the service; each
	// further one is twice as long, up to maxWait.
	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
)

// errSilent is why a call is given up whose replica does not answer at all.
var errSilent = errors.New("the replica answers neither the call nor a probe")

// WrapUnary implements connect.Interceptor: the replicas are called in turns, and a call that did not
// reach one is retried, at the next one and for up to 15 seconds. Answers, good or bad, are final.
func (b *balancer) WrapUnary(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		deadline := time.Now().Add(retryFor)
		backoff := retry.Backoff{First: firstWait, Max: maxWait}
		for timeout := probeTimeout; ; timeout *= 2 {
			resp, err := b.pass(ctx, call, req, timeout)
			if !unreached(err) {
				return resp, err
			}
			if wait := backoff.Next(); time.Now().Add(wait).After(deadline) || !retry.Sleep(ctx, wait) {
				return resp, err
			}
		}
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (b *balancer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (b *balancer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// pass calls one replica after the other, until one answers.
func (b *balancer) pass(
	ctx context.Context, call connect.UnaryFunc, req connect.AnyRequest, timeout time.Duration,
) (resp connect.AnyResponse, err error) {
	endpoints, err := b.inOrder(ctx)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	for _, e := range endpoints {
		if resp, err = b.try(ctx, e, call, req, timeout); !unreached(err) {
			return resp, err
		}
	}
	return nil, err
}

// try calls one replica. A call without an answer goes on while the replica answers probes: what it is
// asked for may take long.
func (b *balancer) try(
	ctx context.Context, e *endpoint, call connect.UnaryFunc, req connect.AnyRequest, timeout time.Duration,
) (connect.AnyResponse, error) {
	watched, giveUp := context.WithCancelCause(e.to(ctx))
	defer giveUp(nil)
	go func() { // ends with the call
		for retry.Sleep(watched, probeInterval) {
			if !b.answers(watched, e, timeout) {
				giveUp(errSilent)
			}
		}
	}()
	resp, err := call(watched, req)
	if err != nil && errors.Is(context.Cause(watched), errSilent) && ctx.Err() == nil {
		err = connect.NewError(connect.CodeUnavailable, errSilent)
	}
	if unreached(err) && ctx.Err() == nil {
		b.markSilent(ctx, e, err)
	}
	return resp, err
}

// unreached reports whether a call did not reach the service.
func unreached(err error) bool {
	return connect.CodeOf(err) == connect.CodeUnavailable && !connect.IsWireError(err)
}
