// SPDX-License-Identifier: Apache-2.0

// Package fault assigns each error to one of a few classes, which determine how callers react. Use [New] where the
// meaning of an error is clear. An error that wraps such an error with %w has the same class. Package rpcfault converts
// classes to RPC codes. The health service returns the RPC code NotFound directly, because its protocol requires it.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class is the class of an error. The comment on each class describes its errors.
type Class int

const (
	// Internal is a defect of the program, or a function that failed. Retrying does not help.
	Internal Class = iota
	// Invalid is a request that can succeed only after the caller has changed it.
	Invalid
	// NotFound is an image that an evaluator does not serve. No other error may have this class, because it makes the
	// gateway try its next evaluator. Porch treats NotFound like every other error, and stops rendering.
	NotFound
	// Denied is a request that policy rejects.
	Denied
	// Precondition is a state outside the program that must change before the request can succeed, such as an image that
	// cannot be pulled.
	Precondition
	// Exhausted is a limit that was reached, such as the length of a queue, a size or a quota.
	Exhausted
	// Unavailable is a component that currently cannot be reached. Retrying may help.
	Unavailable
	// DeadlineExceeded is a caller's deadline that passed.
	DeadlineExceeded
	// Canceled is a request that its caller canceled.
	Canceled
	// Unimplemented is a call that this version does not implement.
	Unimplemented
)

// classNames contains the names of the classes in logs and metrics.
var classNames = [...]string{
	Internal: "internal", Invalid: "invalid", NotFound: "not_found", Denied: "denied",
	Precondition: "precondition", Exhausted: "exhausted", Unavailable: "unavailable",
	DeadlineExceeded: "deadline_exceeded", Canceled: "canceled", Unimplemented: "unimplemented",
}

// String returns the class's name in snake case.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return classNames[Internal]
	}
	return classNames[c]
}

type classError struct {
	error
	class Class
}

func (e classError) Unwrap() error { return e.error }

// New returns an error of the given class. Format and args are as in fmt.Errorf; %w keeps the cause.
func New(class Class, format string, args ...any) error {
	return classError{error: fmt.Errorf(format, args...), class: class}
}

// Of returns the class of the outermost error in err's chain that has a class. A context error without a class counts
// as DeadlineExceeded or Canceled. Any other error without a class counts as Internal.
func Of(err error) Class {
	if c, ok := errors.AsType[classError](err); ok {
		return c.class
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Internal
}

// retryHint is an error with a minimum delay before a retry.
type retryHint struct {
	error
	after time.Duration
}

func (e retryHint) Unwrap() error { return e.error }

// WithRetryAfter adds to err the hint that callers should retry after d.
func WithRetryAfter(err error, d time.Duration) error {
	return retryHint{error: err, after: d}
}

// RetryAfter returns the hint that [WithRetryAfter] added to err or to an error in its chain. If there are several
// hints, it returns the outermost.
func RetryAfter(err error) (time.Duration, bool) {
	r, ok := errors.AsType[retryHint](err)
	return r.after, ok
}
