// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// ListError is the error for an invalid resource list in a request or in a pod's answer. Its text may contain parts of
// the list, so only the caller receives this text. The log and the history contain another text without parts of the
// list. All callers can read the history.
type ListError struct{ Err error }

// Error returns the text for the caller.
func (e *ListError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *ListError) Unwrap() error { return e.Err }

// CheckInput returns an [*ListError] if the resource list is not valid.
func (r *Request) CheckInput(ctx context.Context) error {
	ctx, cancel := r.Limit.Context(ctx)
	defer cancel()
	if err := function.CheckInput(ctx, r.Given, r.ResourceList); err != nil {
		return &ListError{err}
	}
	return nil
}
