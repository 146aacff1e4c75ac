// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

func TestOf(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		want   fault.Class
	}{
		"plain":      {"an error without a class is a defect", io.EOF, fault.Internal},
		"classified": {"the class is what New was given", fault.New(fault.Invalid, "bad"), fault.Invalid},
		"wrapped": {
			"wrapping adds words and keeps the class",
			fmt.Errorf("while reading: %w", fault.New(fault.Exhausted, "full")), fault.Exhausted,
		},
		"reclassified": {
			"the outermost class wins: it is nearer to the caller",
			fault.New(fault.Precondition, "no image: %w", fault.New(fault.NotFound, "404")), fault.Precondition,
		},
		"deadline": {
			"a deadline needs no classifying", fmt.Errorf("wait: %w", context.DeadlineExceeded), fault.DeadlineExceeded,
		},
		"canceled": {"nor does a caller that left", context.Canceled, fault.Canceled},
		"hint": {
			"a retry hint hides no class", fault.WithRetryAfter(fault.New(fault.Exhausted, "full"), time.Second),
			fault.Exhausted,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fault.Of(tc.err); got != tc.want {
				t.Errorf("Of(%v) = %v, want %v: %s", tc.err, got, tc.want, tc.reason)
			}
		})
	}
}

func TestNewKeepsCause(t *testing.T) {
	err := fault.New(fault.Unavailable, "dial: %w, %w", io.ErrUnexpectedEOF, io.ErrClosedPipe)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, io.ErrClosedPipe) {
		t.Error("a cause is not in the chain")
	}
	if got, want := err.Error(), "dial: unexpected EOF, io: read/write on closed pipe"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestRetryAfter(t *testing.T) {
	if _, ok := fault.RetryAfter(io.EOF); ok {
		t.Error("an error without hint has one")
	}
	err := fmt.Errorf("lease: %w", fault.WithRetryAfter(io.EOF, 3*time.Second))
	if d, ok := fault.RetryAfter(err); !ok || d != 3*time.Second {
		t.Errorf("RetryAfter = %v, %v, want 3s, true", d, ok)
	}
}
