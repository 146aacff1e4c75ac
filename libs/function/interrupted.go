// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Interrupted returns the error for a caller of image whose context ended, after the given time and
// because of cause, while something was being done for it. Porch's users know the text
// of a deadline that passed. If it was our own limit, the error is a [*Failure]: its
// detail reports to other services that it was not their deadline.
func Interrupted(cause error, image string, took time.Duration, doing string) error {
	took = took.Round(time.Millisecond)
	if fault.Of(cause) == fault.DeadlineExceeded {
		err := fmt.Errorf("function evaluation timed out for %s: after %v, %s: %w", image, took, doing, cause)
		if _, ok := errors.AsType[*TimeLimitError](cause); ok {
			err = &Failure{Image: image, Reason: TimedOut, message: err.Error(), cause: cause}
		}
		return fault.New(fault.DeadlineExceeded, "%w", err)
	}
	return fault.New(fault.Canceled, "function %q: the caller left after %v, %s: %w", image, took, doing, cause)
}

// notAdmitted is the error for a caller of image that waited for the given time and got
// no slot, because of err.
func notAdmitted(image string, took time.Duration, err error) error {
	switch fault.Of(err) {
	case fault.DeadlineExceeded, fault.Canceled:
		return Interrupted(err, image, took, "waiting for a free slot")
	default:
		return fmt.Errorf("function %q: %w", image, err)
	}
}
