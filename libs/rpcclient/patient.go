package rpcclient

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/pause"
)

// patience is how long a service may be unreachable before a patient call fails. A node
// learns where a Service's pods are a moment after they are ready.
const patience = 3 * time.Second

// Patient returns an option for clients of services that only answer questions: a call
// that reached nobody is made again, for up to three seconds. What a service answers, good
// or bad, stays as it is.
func Patient() connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(patiently))
}

func patiently(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		giveUp := time.Now().Add(patience)
		for next := 50 * time.Millisecond; ; next *= 2 {
			resp, err := call(ctx, req)
			if !unreached(err) || time.Now().Add(next).After(giveUp) || !pause.For(ctx, next) {
				return resp, err
			}
		}
	}
}

// unreached says whether a call failed on its way.
func unreached(err error) bool {
	return connect.CodeOf(err) == connect.CodeUnavailable && !connect.IsWireError(err)
}
