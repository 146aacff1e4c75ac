package rpcclient

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/pause"
)

const (
	// patience is how long a service may be unreachable before a patient call fails. One
	// that is alone and starts anew is back by then, and a busy node has learned where
	// its Service leads.
	patience = 15 * time.Second
	// firstPause is the pause after a call that reached nobody; each further one is twice
	// as long, up to maxPause.
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Patient returns an option for clients of services that only answer questions: a call
// that reached nobody is made again, for up to 15 seconds. What a service answers, good
// or bad, stays as it is.
func Patient() connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(patiently))
}

func patiently(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		giveUp := time.Now().Add(patience)
		for next := firstPause; ; next = min(2*next, maxPause) {
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
