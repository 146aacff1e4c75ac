// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// InputError is why a resource list is not valid. Its text may have parts of the list.
type InputError struct{ error }

// Unwrap returns the error for the caller.
func (e *InputError) Unwrap() error { return e.error }

// CheckInput returns an [*InputError] if the resource list is not valid. The front door calls it, except for images
// whose results are remembered: the result cache knows valid lists without reading them. For those, evaluators call
// it before all that costs them more.
func (r *Request) CheckInput(ctx context.Context) error {
	if r.checked {
		return nil
	}
	ctx, cancel := r.Limit.Context(ctx)
	defer cancel()
	if err := function.CheckInput(ctx, r.Given, r.ResourceList); err != nil {
		return &InputError{err}
	}
	r.checked = true
	return nil
}

// Checked returns next, which evaluates only valid resource lists.
func Checked(next Evaluator) Evaluator { return checked{next} }

type checked struct{ Evaluator }

// Evaluate implements Evaluator.
func (c checked) Evaluate(ctx context.Context, req Request) (Response, error) {
	if err := req.CheckInput(ctx); err != nil {
		return Response{}, err
	}
	return c.Evaluator.Evaluate(ctx, req)
}
