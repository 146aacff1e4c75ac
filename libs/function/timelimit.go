// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limit is a bound on the time that an evaluation takes. The zero Limit bounds nothing.
type Limit struct {
	// For is how long an evaluation may take; zero or less is any time.
	For time.Duration
	// Until is when that time is over.
	Until time.Time
	// Setting names what sets it, for people.
	Setting string
}

// After returns a limit that counts from now.
func After(d time.Duration, setting string) Limit {
	return Limit{For: d, Until: time.Now().Add(d), Setting: setting}
}

// Context returns ctx with the limit's end, unless its own comes earlier. A context that
// the limit ends has a *PassedError as its cause.
func (l Limit) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.For <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, l.Until, &PassedError{l})
}

// PassedError is the cause of a context whose limit has passed. It is a
// context.DeadlineExceeded.
type PassedError struct{ Limit Limit }

func (e *PassedError) Error() string {
	return fmt.Sprintf("the evaluation may take %v: raise %s, or have the function do less", e.Limit.For, e.Limit.Setting)
}

// Unwrap returns what a context says whose deadline has passed.
func (e *PassedError) Unwrap() error { return context.DeadlineExceeded }

// Err returns why ctx has ended: the limit that has passed, or else what ctx.Err says.
func Err(ctx context.Context) error {
	if passed, ok := errors.AsType[*PassedError](context.Cause(ctx)); ok {
		return passed
	}
	return ctx.Err()
}

// Explain returns err, the error of a service that ends shortly before the deadline of ctx, with
// the limit as its reason if that deadline is the limit's and not the caller's.
func (l Limit) Explain(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && l.For > 0 && end.Equal(l.Until) {
		return fmt.Errorf("%w: %w", &PassedError{l}, err)
	}
	return err
}
