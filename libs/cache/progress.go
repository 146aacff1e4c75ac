// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// progressKey is the context key of a fetch's progress.
type progressKey struct{}

// Progress records that the fetch of ctx retries after err. Callers whose time is over before
// the fetch ends get that error.
func Progress(ctx context.Context, err error) {
	if progress, ok := ctx.Value(progressKey{}).(*atomic.Pointer[error]); ok {
		progress.Store(&err)
	}
}

// unanswered returns the error for a caller whose context ended with err before f did.
func (f *fetch[V]) unanswered(err error) error {
	last := f.progress.Load()
	if last == nil || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the answer was still being fetched: %w", err)
	}
	return fault.New(fault.Of(*last), "the answer was still being fetched, after this: %w", *last)
}

// withProgress adds the last progress to the error of a fetch that ran out of time.
func (f *fetch[V]) withProgress(err error) error {
	last := f.progress.Load()
	if last == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w (before that: %w)", err, *last)
}
