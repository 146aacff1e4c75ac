// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

// statusAccounts contains the templates for errors of status queries. They override the templates in accounts.
var statusAccounts = map[connect.Code]account{
	connect.CodeUnimplemented: {
		"the gateway at {address} does not show what it does", "its version is older than fnctl's",
	},
}

// Status returns the current activity of the gateway. Errors are a [CallError].
func (g *Gateway) Status(ctx context.Context) (*gatewayv1.GetStatusResponse, error) {
	resp, err := g.status.GetStatus(ctx, &gatewayv1.GetStatusRequest{})
	if err != nil {
		return nil, g.explainQuery(ctx, statusAccounts, err)
	}
	return resp, nil
}

// Evaluations returns the recent evaluations that req selects, starting with the newest evaluation. Errors are a
// [CallError].
func (g *Gateway) Evaluations(
	ctx context.Context, req *gatewayv1.ListEvaluationsRequest,
) ([]*gatewayv1.Evaluation, error) {
	resp, err := g.status.ListEvaluations(ctx, req)
	if err != nil {
		return nil, g.explainQuery(ctx, statusAccounts, err)
	}
	return resp.GetEvaluations(), nil
}

// IsUnimplemented reports whether an error says that the gateway lacks the method.
func IsUnimplemented(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return ok && connect.CodeOf(call.Cause) == connect.CodeUnimplemented
}
