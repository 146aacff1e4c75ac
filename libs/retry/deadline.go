// SPDX-License-Identifier: Apache-2.0

// Package deadline has the rules for deadlines that all services share: a caller's
// deadline travels as a duration, so each service sees it pass at another time, and an
// evaluation ends at some time though its caller has none.
package deadline

import (
	"context"
	"time"
)

// Margin is how long before its caller's deadline a service may answer that the deadline
// has passed, so that the caller gets the reason.
const Margin = time.Second

// Early returns ctx with a deadline a tenth before its own, or Margin where that is less:
// an answer that is sent then reaches the caller in time. Without a deadline, ctx stays
// as it is.
func Early(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(left/10, Margin))
}

// Near reports whether ctx's deadline has passed, or passes within Margin. If another
// service reports a deadline that has passed, it is this one only if it is near.
func Near(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= Margin
}
