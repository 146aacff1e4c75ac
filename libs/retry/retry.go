// SPDX-License-Identifier: Apache-2.0

// Package retry computes the delays between retries, and waits for them.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff computes increasing delays between retries. Each delay is twice as long as the previous delay, up to a
// maximum. The zero Backoff does not wait.
type Backoff struct {
	First time.Duration
	// Max is the maximum delay, without jitter. Zero means no maximum.
	Max time.Duration
	// Jitter is the maximum random extension of a delay, as a fraction of the delay. It prevents clients that failed
	// at the same time from retrying at the same time.
	Jitter float64

	next time.Duration
}

// Next returns the next delay.
func (b *Backoff) Next() time.Duration {
	wait := max(b.First, b.next)
	if b.Max > 0 {
		wait = min(wait, b.Max)
	}
	b.next = 2 * wait
	if spread := time.Duration(b.Jitter * float64(wait)); spread > 0 {
		wait += rand.N(spread) //nolint:gosec // spreading load needs no secret
	}
	return wait
}

// Reset restarts the sequence of delays with First.
func (b *Backoff) Reset() { b.next = 0 }

// Wait sleeps for the next delay of the sequence. It returns false if ctx is done earlier.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Sleep waits for d. It returns false if ctx is done earlier.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Fits reports whether a wait would end before ctx's deadline. If not, callers should return their last error
// immediately.
func Fits(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > wait
}

// DeadlineMargin is the maximum time by which a service returns DeadlineExceeded before its caller's deadline. By
// returning early, the service ensures that its explanation reaches the caller in time. All services must use the same
// margin. The margin also covers the delay of each call between services. This is because a call sends its deadline as
// a duration, so that the deadline in the called service is later by this delay.
const DeadlineMargin = time.Second

// EarlyDeadline returns ctx with an earlier deadline, so that an error at this deadline still reaches the caller. The
// new deadline is earlier by a tenth of the remaining time, but at most by DeadlineMargin. If ctx has no deadline,
// EarlyDeadline returns ctx unchanged.
func EarlyDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(left/10, DeadlineMargin))
}

// NearDeadline reports whether ctx's deadline has passed or is at most DeadlineMargin away. Use it when another
// service returns DeadlineExceeded: if ctx's deadline is not near, the service had a deadline of its own.
func NearDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= DeadlineMargin
}
