// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TimeLimit limits the duration of an evaluation. The zero TimeLimit means no limit.
type TimeLimit struct {
	// For is the maximum duration. Zero or less means no limit.
	For time.Duration
	// Until is the time when an evaluation exceeds the limit.
	Until time.Time
	// Setting is the name of the setting with the limit. Errors mention it, so that users can raise the limit.
	Setting string
}

// NewTimeLimit returns a time limit that begins now. Setting is the name of the setting that contains d.
func NewTimeLimit(d time.Duration, setting string) TimeLimit {
	return TimeLimit{For: d, Until: time.Now().Add(d), Setting: setting}
}

// Context returns ctx with the time limit as its deadline, unless ctx has an earlier deadline. If the limit cancels
// the context, its cause is a *TimeLimitError.
func (l TimeLimit) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.For <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, l.Until, &TimeLimitError{l})
}

// TimeLimitError is the cause of a context that was canceled because an evaluation exceeded its time limit. It
// wraps context.DeadlineExceeded.
type TimeLimitError struct{ Limit TimeLimit }

func (e *TimeLimitError) Error() string {
	return fmt.Sprintf("the evaluation may take %v: raise %s, or have the function do less", e.Limit.For, e.Limit.Setting)
}

// Unwrap returns context.DeadlineExceeded, so that callers recognize an exceeded deadline.
func (e *TimeLimitError) Unwrap() error { return context.DeadlineExceeded }

// ContextErr returns the reason why ctx is done. It is a *TimeLimitError if a time limit was exceeded, and otherwise
// ctx.Err.
func ContextErr(ctx context.Context) error {
	if passed, ok := errors.AsType[*TimeLimitError](context.Cause(ctx)); ok {
		return passed
	}
	return ctx.Err()
}

// Explain adds a TimeLimitError to err if the deadline of ctx is this time limit. If ctx has an earlier deadline of the
// caller, it returns err unchanged. Use it for errors of services that give up shortly before the deadline, because ctx
// is then not done yet.
func (l TimeLimit) Explain(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && l.For > 0 && end.Equal(l.Until) {
		return fmt.Errorf("%w: %w", &TimeLimitError{l}, err)
	}
	return err
}
