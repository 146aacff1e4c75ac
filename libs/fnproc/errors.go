// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"cmp"
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// LimitError is a function that was killed because it wrote too much. Its class is
// fault.Exhausted.
type LimitError struct {
	Stream string // "output", or a directory
	Unit   string // of Limit; empty is bytes
	Limit  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the function was killed: it wrote more than the %d %s of %s that are allowed",
		e.Limit, cmp.Or(e.Unit, "bytes"), e.Stream)
}

// StoppedError is a function that was killed, or not even started, because the
// context ended.
type StoppedError struct {
	Err   error // context.Canceled or context.DeadlineExceeded
	Cause error // the context's cause, Err itself if none was given
	// OutputHeld is true if the function had exited, and a process that it started still held its output.
	OutputHeld bool
}

func (e *StoppedError) Error() string { return fmt.Sprintf("the evaluation was stopped: %v", e.Cause) }

// Unwrap returns the cause first, so that its class counts.
func (e *StoppedError) Unwrap() []error { return []error{e.Cause, e.Err} }

func limitError(stream string, limit int64) error {
	return fault.New(fault.Exhausted, "%w", &LimitError{Stream: stream, Limit: limit})
}

// stopped is the error for an evaluation whose ctx ended.
func stopped(ctx context.Context) error {
	return &StoppedError{Err: ctx.Err(), Cause: context.Cause(ctx)}
}
