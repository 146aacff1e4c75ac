// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// WordEarlyDeadline returns an interceptor for servers of Porch's FunctionEvaluator service. It replaces the error
// for a request whose deadline passed before its evaluation began, because Connect's own error does not name the
// function.
func WordEarlyDeadline() connect.Interceptor {
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			resp, err := next(ctx, req)
			asked, ok := req.Any().(*evaluator.EvaluateFunctionRequest)
			//nolint:errorlint // An error that only wraps ctx.Err has the service's text already.
			if ok && err != nil && err == ctx.Err() {
				return nil, Interrupted(err, asked.GetImage(), 0, "before it began")
			}
			return resp, err
		}
	})
}
