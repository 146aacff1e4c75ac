// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/typo"
)

// poolAccounts contains the templates of error texts for queries of function pods, by gRPC code.
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

// ListPools returns the function pods and the queue of each image. Every error is a [CallError].
func (g *Gateway) ListPools(ctx context.Context) (*podmanagerv1.ListPoolsResponse, error) {
	resp, err := g.pools.ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
	if err != nil {
		return nil, g.explainQuery(ctx, poolAccounts, err)
	}
	return resp, nil
}

// WatchPools passes the pods of all functions, and then each change of a pod, to the callback changed until ctx
// expires. If the callback returns an error, WatchPools returns it unchanged. All other errors are a [CallError].
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

// explainQuery converts the RPC error of a query, such as ListPools, to a [CallError] with texts for users.
// accounts contains the texts that are specific to the query, by gRPC code.
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

// statusAccounts contains the templates of error texts for queries of the gateway's activity, by gRPC code.
var statusAccounts = map[connect.Code]account{
	connect.CodeUnimplemented: {
		"the gateway at {address} does not show what it does", "its version is older than fnctl's",
	},
}

// Status returns the current activity of the gateway. Every error is a [CallError].
func (g *Gateway) Status(ctx context.Context) (*gatewayv1.GetStatusResponse, error) {
	resp, err := g.status.GetStatus(ctx, &gatewayv1.GetStatusRequest{})
	if err != nil {
		return nil, g.explainQuery(ctx, statusAccounts, err)
	}
	return resp, nil
}

// Evaluations returns recent evaluations that match req, the newest first. Every error is a [CallError].
func (g *Gateway) Evaluations(
	ctx context.Context, req *gatewayv1.ListEvaluationsRequest,
) ([]*gatewayv1.Evaluation, error) {
	resp, err := g.status.ListEvaluations(ctx, req)
	if err != nil {
		return nil, g.explainQuery(ctx, statusAccounts, err)
	}
	return resp.GetEvaluations(), nil
}

// IsUnimplemented reports whether a call failed because the gateway, for example an older version, lacks the method.
func IsUnimplemented(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return ok && connect.CodeOf(call.Cause) == connect.CodeUnimplemented
}

// Images returns the sorted names of the images that the gateway runs. Every error is a [CallError].
func (g *Gateway) Images(ctx context.Context) ([]string, error) {
	status, statusErr := g.Status(ctx)
	pools, poolsErr := g.ListPools(ctx)
	if statusErr != nil && (poolsErr != nil || !IsUnimplemented(statusErr)) {
		return nil, statusErr
	}
	if poolsErr != nil && !IsUnimplemented(poolsErr) {
		return nil, poolsErr
	}
	images := slices.Clone(status.GetImages())
	for _, pool := range pools.GetPools() {
		images = append(images, pool.GetKey().GetReference())
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

// suggestTimeout is the timeout for listing the gateway's images, to suggest a similar image after a typo.
const suggestTimeout = 2 * time.Second

// suggestImage handles an error about an unknown image. It adds the gateway's most similar image name to the advice.
func (g *Gateway) suggestImage(ctx context.Context, image string, call *CallError) {
	if g.local || connect.CodeOf(call.Cause) != connect.CodeNotFound {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	images, _ := g.Images(ctx) // the error about the image is more important than an error here
	if near := nearestImage(image, images); near != "" {
		call.Advice = strings.TrimSuffix("do you mean "+near+"? "+call.Advice, " ")
	}
}

// nearestImage returns the image whose repository is most similar to wrong, a misspelled name. If no repository is
// similar, it returns "". If wrong contains no slash, the result contains neither registry nor directories.
func nearestImage(wrong string, images []string) string {
	byRepository := map[string]string{} // the last image of a repository has the highest tag
	for _, image := range images {
		if !strings.Contains(wrong, "/") {
			image = path.Base(image)
		}
		repository, _ := imagename.SplitTag(image)
		byRepository[repository] = image
	}
	const maxEdits = 2
	repository, _ := imagename.SplitTag(wrong)
	return byRepository[typo.Nearest(repository, slices.Sorted(maps.Keys(byRepository)), maxEdits)]
}
