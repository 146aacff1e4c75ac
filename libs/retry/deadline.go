// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"time"
)

// DeadlineMargin is the maximum time by which a service may answer early that the deadline has passed, so that the
// caller gets the reason before its deadline. All services must use the same margin. Deadlines are sent as durations,
// so that they do not pass at exactly the same time in all services.
const DeadlineMargin = time.Second

// EarlyDeadline returns ctx with an earlier deadline, so that an answer that is sent at that time reaches the caller
// before the caller's deadline. It is earlier by a tenth of the remaining time, or by DeadlineMargin if that is less.
// If ctx contains no deadline, EarlyDeadline returns it unchanged.
func EarlyDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(left/10, DeadlineMargin))
}

// NearDeadline reports whether ctx's deadline has passed, or passes within DeadlineMargin. If another service reports
// a passed deadline, it may mean one of its own. It means ctx's deadline only if that is near.
func NearDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= DeadlineMargin
}
