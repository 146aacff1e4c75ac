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
	// retryFor is the maximum time for retries of a call to an unreachable service. It is long enough for a replica to
	// restart, and for a busy node to learn the endpoints of a new Service.
	retryFor = 15 * time.Second
	// firstWait is the delay before the first retry of a call that did not reach the service. The delay doubles with
	// each retry, up to maxWait.
	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
)

// ErrSilent is the error of a call when the replica answers neither the call nor a health check.
var ErrSilent = errors.New("the replica answers neither the call nor a probe")

// distributeCalls is a connect.UnaryInterceptorFunc. It distributes calls over the replicas of the service. If a
// replica cannot be reached or stops answering, it retries the call at the next replica, for up to 15 seconds. It does
// not retry a call that a replica answered with an error.
func (b *balancer) distributeCalls(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		deadline := time.Now().Add(retryFor)
		backoff := retry.Backoff{First: firstWait, Max: maxWait}
		for timeout := probeTimeout; ; timeout *= 2 {
			resp, err := b.callReplicas(ctx, call, req, timeout)
			if !isUnreached(err) {
				return resp, err
			}
			if wait := backoff.Next(); time.Now().Add(wait).After(deadline) || !retry.Sleep(ctx, wait) {
				return resp, err
			}
		}
	}
}

// callReplicas calls the replicas in order until one of them returns a response or an error.
func (b *balancer) callReplicas(
	ctx context.Context, call connect.UnaryFunc, req connect.AnyRequest, timeout time.Duration,
) (resp connect.AnyResponse, err error) {
	replicas, err := b.inOrder(ctx)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	for _, r := range replicas {
		err = r.Call(ctx, timeout, isUnreached, func(ctx context.Context, _ func()) (err error) {
			resp, err = call(ctx, req)
			return err
		})
		if !isUnreached(err) {
			return resp, err
		}
	}
	return nil, err
}

// Replicas returns the replicas of the service in the order in which a caller should try them. The first replica
// changes with each call to spread the load. Replicas that do not answer are last. Replicas waits until the
// service's name is resolved.
func (c *Client) Replicas(ctx context.Context) ([]*Replica, error) { return c.balancer.inOrder(ctx) }

// ProbeTimeout is the timeout of health checks during the first attempt of a call. Callers should double it for each
// further attempt, because the replica may only be slow.
const ProbeTimeout = probeTimeout

// Call runs the function call, which sends requests to the replica. Call also sends a health check every second, until
// the function call invokes answered. If the replica does not answer a health check within timeout, Call cancels the
// requests and returns an error that wraps [ErrSilent]. Later calls then try this replica last, until it answers a
// health check. Later calls also do so if the function call returned an error for which unreached returns true.
func (r *Replica) Call(ctx context.Context, timeout time.Duration, unreached func(error) bool,
	call func(ctx context.Context, answered func()) error,
) error {
	watched, giveUp := context.WithCancelCause(r.withReplica(ctx))
	defer giveUp(nil)
	probing, answered := context.WithCancel(watched)
	defer answered()
	go func() { // returns when probing is canceled, at the latest when Call returns
		for retry.Sleep(probing, probeInterval) {
			if !r.service.answersProbe(probing, r, timeout) && probing.Err() == nil {
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
	r.service.markSilent(ctx, r, err)
	return err
}

// isUnreached reports whether a call may be retried because it failed without an answer from the service.
func isUnreached(err error) bool {
	return connect.CodeOf(err) == connect.CodeUnavailable && !connect.IsWireError(err)
}
