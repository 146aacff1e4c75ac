// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"time"
)

// DeadlineMargin is the time before a deadline in which a service may already return DeadlineExceeded, so that its
// explanation reaches the caller in time. All services must use the same margin. It also covers the delay of each
// call between services, because deadlines are sent as durations.
const DeadlineMargin = time.Second

// EarlyDeadline returns ctx with an earlier deadline, so that an answer at this deadline reaches the caller before
// the caller's own deadline. It is earlier by a tenth of the remaining time, but by at most DeadlineMargin. If ctx
// has no deadline, EarlyDeadline returns ctx unchanged.
func EarlyDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(left/10, DeadlineMargin))
}

// NearDeadline reports whether ctx's deadline has passed or is at most DeadlineMargin away. Use it if another
// service returns DeadlineExceeded: the error means ctx's deadline only if this deadline is near, and otherwise a
// deadline of that service.
func NearDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= DeadlineMargin
}
