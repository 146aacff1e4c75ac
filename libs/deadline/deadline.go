// Package deadline is what services agree on about a caller's deadline, which each of
// them sees pass at another time: it travels as a duration, and no two clocks run
// equally fast.
package deadline

import (
	"context"
	"time"
)

// Margin is how long before its caller's deadline a service may answer that the time is
// over, so that the caller hears what it was spent on.
const Margin = time.Second

// Early returns ctx with an end a tenth before its own, or Margin where that is less: what
// is said at that end reaches the caller in time. Without a deadline, ctx stays as it is.
func Early(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(left/10, Margin))
}

// Near says whether ctx's deadline has passed, or passes within Margin. Another service
// that says now that the time is over is right; one that says so before speaks of some
// other deadline.
func Near(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= Margin
}
