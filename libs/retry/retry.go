// SPDX-License-Identifier: Apache-2.0

// Package retry computes the waits between attempts, and waits until a context is done.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff computes growing waits between attempts: each wait is twice as long as the one before, up to a maximum. The
// zero Backoff does not wait.
type Backoff struct {
	First time.Duration
	// Max is the maximum wait without jitter. Zero means no maximum.
	Max time.Duration
	// Jitter is the maximum random extension of a wait, as a fraction of the wait. It prevents clients that failed
	// together from retrying together.
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

// Reset makes First the next wait.
func (b *Backoff) Reset() { b.next = 0 }

// Wait sleeps for the duration that Next returns. It returns false if ctx is done before.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Sleep waits for d. It returns false if ctx is done before.
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

// Fits reports whether a wait ends before ctx's deadline. If not, callers should return the last error immediately.
func Fits(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > wait
}
