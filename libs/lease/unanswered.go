// SPDX-License-Identifier: Apache-2.0

package lease

import "errors"

// unansweredError is the error of a replica that could not be reached, or was lost.
type unansweredError struct{ error }

func (u unansweredError) Unwrap() error { return u.error }

// IsUnanswered reports whether err means that a [Client] could not reach its replica, or lost it. Any
// other error that [IsElsewhere] is about is an answer.
func IsUnanswered(err error) bool {
	_, ok := errors.AsType[unansweredError](err)
	return ok
}
