// SPDX-License-Identifier: Apache-2.0

package lease

import "errors"

// unansweredError marks the error of a call that a replica did not answer, unlike a call that it rejected.
type unansweredError struct{ error }

func (u unansweredError) Unwrap() error { return u.error }

// IsUnanswered reports whether a [Client] could not reach its replica, or lost the connection to it. Other errors
// that [IsElsewhere] recognizes were sent by the replica, which is therefore alive.
func IsUnanswered(err error) bool {
	_, ok := errors.AsType[unansweredError](err)
	return ok
}
