// SPDX-License-Identifier: Apache-2.0

// Package evaluation has the request and the response that the packages of the gateway
// share, and the multi-evaluator, which asks one evaluator after the other.
package evaluation

import (
	"cmp"
	"context"
	"errors"
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
	// Digest is the digest that the image must have, because the policy decided about this one; empty for
	// any.
	Digest string
	// Network reports whether the function may use the network; nil for what the evaluator's settings say.
	Network *bool
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

// UsesNetwork reports whether the function may use the network, where configured is what the evaluator's
// settings say.
func (r Request) UsesNetwork(configured bool) bool {
	if r.Network != nil {
		return *r.Network
	}
	return configured
}

// Moved is the error for a request whose image has another digest than the one that the policy decided
// about, or one that is not known.
func (r Request) Moved(digest string) error {
	if digest == "" {
		return fault.New(fault.Precondition, "%s is rejected: the policy has decided about %s, and the function pod names "+
			"its image by tag, so that its node may run another one: use the pod-manager of this version",
			r.Given, r.Digest)
	}
	return fault.New(fault.Unavailable, "%s moved from %s to %s while the policy was asked about it: try again",
		r.Given, r.Digest, digest)
}

// DeniedError is the denial of a rule of the policy.
type DeniedError struct {
	Rule   string
	Reason error
}

func (e *DeniedError) Error() string { return e.Reason.Error() }

// Unwrap returns the error for the caller.
func (e *DeniedError) Unwrap() error { return e.Reason }

// PassedOverError is why the policy does not allow an evaluator that serves the image. Another one may be
// allowed.
type PassedOverError struct{ Reason error }

func (e *PassedOverError) Error() string { return e.Reason.Error() }

// Unwrap returns the error for the caller if no other evaluator is allowed.
func (e *PassedOverError) Unwrap() error { return e.Reason }

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
// one only if the one before does not serve the image, or the policy passes over it.
type Chain []Evaluator

// Evaluate runs the function with the first evaluator that serves its image and that the policy allows.
func (c Chain) Evaluate(ctx context.Context, req Request) (Response, error) {
	var denied error
	for _, e := range c {
		resp, err := e.Evaluate(ctx, req)
		if fault.Of(err) == fault.NotFound {
			continue
		}
		if _, ok := errors.AsType[*PassedOverError](err); ok {
			if denied == nil {
				denied = err
			}
			continue
		}
		resp.Evaluator = cmp.Or(resp.Evaluator, e.Name())
		return resp, err
	}
	if denied != nil {
		return Response{}, denied
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
