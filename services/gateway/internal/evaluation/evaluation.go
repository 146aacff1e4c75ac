// SPDX-License-Identifier: Apache-2.0

// Package evaluation defines the requests and responses of the gateway's evaluators, and the chain of evaluators.
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

// Request is an evaluation whose image name is resolved.
type Request struct {
	// Given is the image as the caller wrote it, for error texts.
	Given string
	// Image is the canonical name of the image.
	Image imagename.Name
	// ResourceList is the function's input. Evaluators do not change it.
	ResourceList []byte
	// Caller is the address of the caller. It is empty if the address is unknown.
	Caller string
	// Limit limits all steps of the evaluation. If the function has its own limit, that limit replaces this limit
	// once the function has its slot or its pod.
	Limit function.TimeLimit
	// Measured records the progress of the evaluation. A nil *evalmetrics.Evaluation records nothing.
	Measured *evalmetrics.Evaluation
}

// Response is the output of a function that succeeded.
type Response struct {
	ResourceList []byte
	Log          []byte
	// Results are the results in the resource list.
	Results []resourcelist.Result
	// Evaluator is the name of the evaluator that ran the function, or "cache".
	Evaluator string
	// Digest is the digest of the image that ran. It is empty if the digest is unknown, such as for a local binary.
	Digest string
	// Cache is the outcome of the result cache. It is empty if the cache was not used.
	Cache string
}

// Evaluator runs functions in one kind of environment.
type Evaluator interface {
	// Name returns the evaluator's name, as in the setting DisableRuntimes.
	Name() string
	// Evaluate runs the function. It returns an error of class fault.NotFound only if this evaluator does not serve
	// the image, because the chain then calls the next evaluator.
	Evaluate(ctx context.Context, req Request) (Response, error)
}

// Chain is the list of enabled evaluators. It tries its evaluators in order, and continues only if an evaluator does
// not serve the image.
type Chain []Evaluator

// Evaluate runs the function with the first evaluator that serves its image.
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

// String returns the evaluators' names in order.
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
