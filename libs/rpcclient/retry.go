// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
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

// Retry returns an option for clients of services whose calls change nothing: a call that did
// not reach the service is retried for up to 15 seconds. Answers, good or bad, are final.
func Retry() connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(retryUnreached))
}

func retryUnreached(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		deadline := time.Now().Add(retryFor)
		backoff := retry.Backoff{First: firstWait, Max: maxWait}
		for {
			resp, err := call(ctx, req)
			if !unreached(err) {
				return resp, err
			}
			if wait := backoff.Next(); time.Now().Add(wait).After(deadline) || !retry.Sleep(ctx, wait) {
				return resp, err
			}
		}
	}
}

// unreached reports whether a call did not reach the service.
func unreached(err error) bool {
	return connect.CodeOf(err) == connect.CodeUnavailable && !connect.IsWireError(err)
}
