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

// ErrSilent is why a call is given up whose replica does not answer at all.
var ErrSilent = errors.New("the replica answers neither the call nor a probe")

// WrapUnary implements connect.Interceptor: the replicas are called in turns, and a call that did not
// reach one is retried, at the next one and for up to 15 seconds. Answers, good or bad, are final.
func (b *balancer) WrapUnary(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		deadline := time.Now().Add(retryFor)
		backoff := retry.Backoff{First: firstWait, Max: maxWait}
		for timeout := probeTimeout; ; timeout *= 2 {
			resp, err := b.callReplicas(ctx, call, req, timeout)
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

// callReplicas calls one replica after the other, until one answers.
func (b *balancer) callReplicas(
	ctx context.Context, call connect.UnaryFunc, req connect.AnyRequest, timeout time.Duration,
) (resp connect.AnyResponse, err error) {
	endpoints, err := b.inOrder(ctx)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	for _, e := range endpoints {
		if resp, err = b.callReplica(ctx, e, call, req, timeout); !unreached(err) {
			return resp, err
		}
	}
	return nil, err
}

// callReplica makes a call of a balanced client to one replica.
func (b *balancer) callReplica(
	ctx context.Context, r *Replica, call connect.UnaryFunc, req connect.AnyRequest, timeout time.Duration,
) (resp connect.AnyResponse, err error) {
	err = b.callWatched(ctx, r, timeout, unreached, func(ctx context.Context, _ func()) error {
		resp, err = call(ctx, req)
		return err
	})
	return resp, err
}

// Replicas returns the replicas of the service in the order in which to call them: each one is first in turns,
// silent ones are last. It waits until the name of the service has been looked up.
func (c *Client) Replicas(ctx context.Context) ([]*Replica, error) { return c.balancer.inOrder(ctx) }

// Call calls one replica: requests of call's context go to it. A call that has no answer continues for as long as the
// replica answers probes, each within timeout, and ends with [ErrSilent] otherwise; probes end when call reports
// that the replica answered. If unreached reports that call's error means that the replica was not reached, the
// replica is silent until it answers a probe.
func (c *Client) Call(ctx context.Context, r *Replica, timeout time.Duration, unreached func(error) bool,
	call func(ctx context.Context, answered func()) error,
) error {
	return c.balancer.callWatched(ctx, r, timeout, unreached, call)
}

// ProbeTimeout is the timeout of the first probe of a call. Callers that retry double it each time.
const ProbeTimeout = probeTimeout

// callWatched implements Call.
func (b *balancer) callWatched(ctx context.Context, r *Replica, timeout time.Duration, unreached func(error) bool,
	call func(ctx context.Context, answered func()) error,
) error {
	watched, giveUp := context.WithCancelCause(r.route(ctx))
	defer giveUp(nil)
	probing, answered := context.WithCancel(watched)
	defer answered()
	go func() { // ends with the call
		for retry.Sleep(probing, probeInterval) {
			if !b.answers(probing, r, timeout) && probing.Err() == nil {
				giveUp(ErrSilent)
			}
		}
	}()
	err := call(watched, answered)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if errors.Is(context.Cause(watched), ErrSilent) {
		err = connect.NewError(connect.CodeUnavailable, ErrSilent)
	} else if !unreached(err) {
		return err
	}
	b.markSilent(ctx, r, err)
	return err
}

// unreached reports whether a call did not reach the service.
func unreached(err error) bool {
	return connect.CodeOf(err) == connect.CodeUnavailable && !connect.IsWireError(err)
}
