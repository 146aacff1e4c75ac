// SPDX-License-Identifier: Apache-2.0

// Package retry waits between attempts, as long as the deadline allows.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the growing waits between attempts: the first, then each twice as long up to a
// limit. The zero Backoff does not wait.
type Backoff struct {
	First time.Duration
	// Max bounds a wait; zero is no bound.
	Max time.Duration
	// Jitter is the maximum extension of a wait, as a fraction of it, so that clients that failed together do not retry
	// together.
	Jitter float64

	next time.Duration
}

// Next returns the next wait.
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

// Reset starts again with the first wait.
func (b *Backoff) Reset() { b.next = 0 }

// Wait sleeps for the next wait, and reports whether ctx lasted that long.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Sleep waits for d, or until ctx is done, and reports whether the full time passed.
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

// Fits reports whether a wait is shorter than the rest of ctx's deadline: if not, callers should return the last error
// immediately.
func Fits(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > wait
}
