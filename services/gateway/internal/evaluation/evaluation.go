// SPDX-License-Identifier: Apache-2.0

// Package evaluation defines the interface of the gateway's evaluators: for local binaries, for sandboxes and for
// pods. A chain tries several evaluators in order.
package evaluation

import (
	"cmp"
	"context"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

// Request contains the input of an evaluation whose image name is already resolved.
type Request struct {
	// Given is the image as the caller wrote it. Errors show it, because the caller may not know the canonical name.
	Given string
	// Image is the canonical name of the image, with registry and tag or digest.
	Image imagename.Name
	// ResourceList is the function's input. Evaluators must not change it.
	ResourceList []byte
	// Caller is the address of the caller. It is empty if the address is unknown.
	Caller string
	// Limit limits the total time of the evaluation. If the function has its own time limit, that limit replaces Limit as
	// soon as the function can start.
	Limit function.TimeLimit
	// Measured records the progress of the evaluation for metrics and logs. It is required.
	Measured *evalmetrics.Evaluation
}

// Response is the output of a function that succeeded.
type Response struct {
	ResourceList []byte
	Log          []byte
	// Results are the messages that the function reported in its resource list, such as warnings.
	Results []resourcelist.Result
	// Evaluator is the name of the evaluator that ran the function, or "cache" for a response from the result cache.
	Evaluator string
	// Digest is the digest of the image that ran. It is empty if the digest is unknown, such as for a local binary.
	Digest string
	// Cache is the outcome of the lookup in the result cache: hit, shared or miss. It is empty without a lookup.
	Cache string
}

// Evaluator runs functions in one kind of environment: as local binaries, in sandboxes or in pods.
type Evaluator interface {
	// Name returns the evaluator's name. The setting FNR_DISABLE_RUNTIMES disables evaluators by their names.
	Name() string
	// Evaluate runs the function. An error of class fault.NotFound means that this evaluator does not serve the image,
	// so that the next evaluator is called. Evaluators must return it for no other reason.
	Evaluate(ctx context.Context, req Request) (Response, error)
}

// Chain is the list of enabled evaluators. It calls them in order until an evaluator serves the image.
type Chain []Evaluator

// Evaluate calls the first evaluator that serves the image. If there is none, the error's class is fault.NotFound.
func (c Chain) Evaluate(ctx context.Context, req Request) (Response, error) {
	for _, e := range c {
		resp, err := e.Evaluate(ctx, req)
		if fault.Of(err) == fault.NotFound {
			continue
		}
		resp.Evaluator = cmp.Or(resp.Evaluator, e.Name())
		return resp, err
	}
	return Response{}, fault.New(fault.NotFound,
		"function %q not found: no enabled evaluator serves %s (asked: %s)", req.Given, req.Image, c)
}

// String returns the names of the evaluators in order, for errors.
func (c Chain) String() string {
	if len(c) == 0 {
		return "none, all are disabled"
	}
	names := make([]string, len(c))
	for i, e := range c {
		names[i] = e.Name()
	}
	return strings.Join(names, ", ")
}
