// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"time"
)

// DeadlineMargin is the maximum time before its caller's deadline at which a service may answer that the deadline has
// passed, so that the caller gets the reason. All services agree on it: a deadline travels as a duration, so each
// service sees it pass at another time.
const DeadlineMargin = time.Second

// EarlyDeadline returns ctx with a deadline a tenth before its own, or DeadlineMargin where that is less:
// an answer that is sent then reaches the caller in time. Without a deadline, ctx stays
// as it is.
func EarlyDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(left/10, DeadlineMargin))
}

// NearDeadline reports whether ctx's deadline has passed, or passes within DeadlineMargin. If another service reports a
// passed deadline, it means this deadline only if it is near.
func NearDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= DeadlineMargin
}
