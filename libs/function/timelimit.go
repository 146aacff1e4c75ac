// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TimeLimit is a bound on the time that an evaluation takes. The zero TimeLimit bounds nothing.
type TimeLimit struct {
	// For is how long an evaluation may take; zero or less is any time.
	For time.Duration
	// Until is when that time is over.
	Until time.Time
	// Setting names what sets it, for users.
	Setting string
}

// NewTimeLimit returns a limit that counts from now.
func NewTimeLimit(d time.Duration, setting string) TimeLimit {
	return TimeLimit{For: d, Until: time.Now().Add(d), Setting: setting}
}

// Context returns ctx with the limit's end, unless its own comes earlier. A context that
// the limit ends has a *TimeLimitError as its cause.
func (l TimeLimit) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.For <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, l.Until, &TimeLimitError{l})
}

// TimeLimitError is the cause of a context whose limit has passed. It is a
// context.DeadlineExceeded.
type TimeLimitError struct{ Limit TimeLimit }

func (e *TimeLimitError) Error() string {
	return fmt.Sprintf("the evaluation may take %v: raise %s, or have the function do less", e.Limit.For, e.Limit.Setting)
}

// Unwrap returns what a context says whose deadline has passed.
func (e *TimeLimitError) Unwrap() error { return context.DeadlineExceeded }

// ContextErr returns why ctx has ended: the limit that has passed, or else what ctx.Err says.
func ContextErr(ctx context.Context) error {
	if passed, ok := errors.AsType[*TimeLimitError](context.Cause(ctx)); ok {
		return passed
	}
	return ctx.Err()
}

// Explain returns err, the error of a service that ends shortly before the deadline of ctx, with
// the limit as its reason if that deadline is the limit's and not the caller's.
func (l TimeLimit) Explain(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && l.For > 0 && end.Equal(l.Until) {
		return fmt.Errorf("%w: %w", &TimeLimitError{l}, err)
	}
	return err
}
