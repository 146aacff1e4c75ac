// SPDX-License-Identifier: Apache-2.0

// Package evaluation has the request and the response that the packages of the gateway
// share, and the multi-evaluator, which asks one evaluator after the other.
package evaluation

import (
	"cmp"
	"context"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/measure"
)

// Request is one evaluation, with its image name resolved.
type Request struct {
	// Given is the image as the caller wrote it: error texts name it.
	Given string
	// Image is its canonical name.
	Image imagename.Name
	// ResourceList is the function's input. Evaluators pass it on as it is.
	ResourceList []byte
	// Caller is who asks, as far as that is known; empty if it is not.
	Caller string
	// Limit bounds the evaluation: evaluators apply it to all that they do, except that a
	// function with a limit of its own may run that long once it has its slot or its pod.
	Limit function.TimeLimit
	// Measured is what is measured of the evaluation; nil if nothing is.
	Measured *measure.Evaluation
}

// AllSlotsTaken is what evaluations on this machine wait for in their queue.
const AllSlotsTaken = "others have all processes that may run at once"

// Response is what a function that succeeded wrote.
type Response struct {
	ResourceList []byte
	Log          []byte
	// Results are the results in the list.
	Results []resourcelist.Result
	// Evaluator is the name of the evaluator that answered, or that of the cache which did.
	Evaluator string
	// Digest is that of the image that was evaluated; empty if it is not known, as of a local binary.
	Digest string
	// Cache is how the result cache was used; empty if it was not.
	Cache string
}

// Evaluator runs functions in one way.
type Evaluator interface {
	// Name is the evaluator's name, as in --disable-runtimes.
	Name() string
	// Evaluate runs the function. An error of class fault.NotFound means that this
	// evaluator does not serve the image, and nothing else.
	Evaluate(ctx context.Context, req Request) (Response, error)
}

// Chain is the multi-evaluator: it asks its evaluators in their order, the next
// one only if the one before does not serve the image.
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

// String returns the evaluators' names in their order.
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
