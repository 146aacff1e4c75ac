// SPDX-License-Identifier: Apache-2.0

package lease

import "errors"

// unansweredError marks the error of a call to which the replica gave no answer.
type unansweredError struct{ error }

func (u unansweredError) Unwrap() error { return u.error }

// IsUnanswered reports whether err means that a [Client] could not reach its replica, or lost the connection to it.
// Other errors for which [IsElsewhere] returns true are answers of the replica.
func IsUnanswered(err error) bool {
	_, ok := errors.AsType[unansweredError](err)
	return ok
}
