// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// poolAccounts contains the templates for errors of pool queries. They override the templates in accounts.
var poolAccounts = map[connect.Code]account{
	connect.CodeUnimplemented: {
		"the gateway at {address} knows of no pods",
		"its functions run as local binaries, or its version is older than fnctl's",
	},
	connect.CodeUnavailable: {
		"the gateway cannot reach the pod-manager ({message})",
		"check that the pod-manager runs, and the gateway's FNR_POD_MANAGER",
	},
}

// ListPools returns the pools of function pods. Errors are a [CallError].
func (g *Gateway) ListPools(ctx context.Context) (*podmanagerv1.ListPoolsResponse, error) {
	resp, err := g.pools.ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
	if err != nil {
		return nil, g.explainQuery(ctx, poolAccounts, err)
	}
	return resp, nil
}

// WatchPools calls changed with all pools and then with each change until ctx expires or changed returns an error,
// which WatchPools returns. All further errors are a [CallError].
func (g *Gateway) WatchPools(ctx context.Context, changed func(*podmanagerv1.WatchPoolsResponse) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := g.pools.WatchPools(ctx, &podmanagerv1.WatchPoolsRequest{})
	if err != nil {
		return g.explainQuery(ctx, poolAccounts, err)
	}
	defer func() { cancel(); _ = stream.Close() }()
	for stream.Receive() {
		if err := changed(stream.Msg()); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return g.explainQuery(ctx, poolAccounts, err)
	}
	return &CallError{Problem: "the gateway ended the watch", Advice: "start again"}
}

// explainQuery translates the RPC error of a query for users. The accounts override the default texts.
func (g *Gateway) explainQuery(ctx context.Context, accounts map[connect.Code]account, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &CallError{Problem: "interrupted", Cause: ctx.Err()}
	}
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		cerr = connect.NewError(connect.CodeUnknown, err)
	}
	a, ok := accounts[cerr.Code()]
	switch {
	case brokenConnection(cerr):
		a = g.unreachable
	case !ok && cerr.Code() == connect.CodeUnauthenticated:
		a = g.texts[cerr.Code()]
	case !ok:
		a = account{"the gateway could not answer ({code}: {message})", "check the gateway at {address} and its log"}
	}
	fill := g.filler(pipeline.Request{}, cerr)
	return &CallError{Problem: fill.Replace(a.problem), Advice: fill.Replace(a.advice), Cause: err}
}
