// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// InputError is the error for an invalid resource list. Only the caller gets its text, which may contain parts of
// the list. All callers can read the history, so the history shows another text.
type InputError struct{ error }

// Unwrap returns the wrapped error, which the caller gets.
func (e *InputError) Unwrap() error { return e.error }

// CheckInput returns an [*InputError] if the resource list is not valid.
func (r *Request) CheckInput(ctx context.Context) error {
	ctx, cancel := r.Limit.Context(ctx)
	defer cancel()
	if err := function.CheckInput(ctx, r.Given, r.ResourceList); err != nil {
		return &InputError{err}
	}
	return nil
}
