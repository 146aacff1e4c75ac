// SPDX-License-Identifier: Apache-2.0

// Package fault sorts errors into the few classes that callers act on.
//
// An error is classified where its meaning is clear, with [New]; wrapping it with fmt.Errorf and %w keeps the class.
// The only mapping of classes to RPC codes is in package rpcfault. Only the health service answers by itself, with
// NotFound for an unknown service, as its protocol requires.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class is the meaning of an error for the caller.
type Class int

const (
	// Internal is a defect or a failing function: trying again is no help.
	Internal Class = iota
	// Invalid is a request that can never succeed as it is.
	Invalid
	// NotFound is an image that no enabled evaluator serves, and nothing else. The chain of evaluators continues with the
	// next evaluator; Porch stops the rendering, as with each error.
	NotFound
	// Denied is a request that policy rejects.
	Denied
	// Precondition is a state outside the program that must change before the request can succeed, such as an image that
	// cannot be pulled.
	Precondition
	// Exhausted is a limit that was reached: a queue, a size, a quota.
	Exhausted
	// Unavailable is a component that cannot be reached now; trying again may help.
	Unavailable
	// DeadlineExceeded is a caller's deadline that passed.
	DeadlineExceeded
	// Canceled is a caller that left.
	Canceled
	// Unimplemented is a call that this version does not have.
	Unimplemented
)

// classNames are the names as logs and metrics show them.
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

// classError is an error with a class.
type classError struct {
	error
	class Class
}

func (e classError) Unwrap() error { return e.error }

// New returns an error of the given class. Format and args are as in fmt.Errorf; %w keeps the cause.
func New(class Class, format string, args ...any) error {
	return classError{error: fmt.Errorf(format, args...), class: class}
}

// Of returns the class of the outermost classified error in err's chain. A bare
// context error has the class of its name; anything else is Internal.
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

// retryHint is an error with a hint when to try again.
type retryHint struct {
	error
	after time.Duration
}

func (e retryHint) Unwrap() error { return e.error }

// WithRetryAfter adds to err the hint that trying again makes sense after d.
func WithRetryAfter(err error, d time.Duration) error {
	return retryHint{error: err, after: d}
}

// RetryAfter returns the outermost hint of [WithRetryAfter] in err's chain.
func RetryAfter(err error) (time.Duration, bool) {
	r, ok := errors.AsType[retryHint](err)
	return r.after, ok
}
