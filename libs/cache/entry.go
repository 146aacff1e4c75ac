// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// outageMemory is the time for which the cache assumes an outage to last after retryAt. Until then, callers get
	// stale entries without waiting, because the source would hang or fail.
	outageMemory = time.Minute
	// maxRetryAfter limits the retry hint of a source if its entries never expire. Otherwise the TTL limits it.
	maxRetryAfter = 5 * time.Minute
	// failureBytes is the memory of a failure without its text.
	failureBytes = 512
)

// Lifetime is the lifetime of an entry.
type Lifetime struct {
	// TTL is the age up to which an entry is returned without waiting for its source. When an entry older than half
	// of the TTL is used, it is fetched again in the background. Zero means that the entry never expires.
	TTL time.Duration
	// Stale is the age up to which an entry is returned if its source is unavailable or slower than StaleWait.
	Stale time.Duration
	// Failure is the lifetime of a cached failure.
	Failure time.Duration
}

// entry is the entry of a key. The zero entry has neither a value nor a failure.
type entry[V any] struct {
	value     V
	known     bool
	fetchedAt time.Time
	usedAt    time.Time

	failure error
	retryAt time.Time
	// generation is the cache's generation at the start of the failed fetch. In later generations, the entry has no
	// failure.
	generation int
}

// state says how the entry may be used.
type state int

const (
	absent state = iota // fetch, and wait for it
	stale               // fetch, wait for it up to StaleWait, then return the entry
	fresh               // return the entry
	aging               // return the entry, and refresh it
	failed              // return the failure
)

func (e *entry[V]) stateAt(life Lifetime, now time.Time) state {
	failing := e.failure != nil && now.Before(e.retryAt)
	age := now.Sub(e.fetchedAt)
	// An outage counts for longer than retryAt, because otherwise callers would wait again and again for a hanging
	// source. A refusal by the source invalidates a stale value.
	outage := isOutage(e.failure) && now.Before(e.retryAt.Add(outageMemory))
	switch {
	case e.known && (life.TTL == 0 || age < life.TTL/2):
		return fresh
	case e.known && (age < life.TTL || (outage && age < life.Stale)):
		if failing {
			return fresh
		}
		return aging
	case failing:
		return failed
	case e.known && (e.failure == nil || isOutage(e.failure)) && age < life.Stale:
		return stale
	default:
		return absent
	}
}

// isOutage reports whether a failure is about the source instead of the key: the source cannot be reached, limits its
// requests, or had too little time.
func isOutage(err error) bool {
	switch fault.Of(err) {
	case fault.Unavailable, fault.Exhausted, fault.DeadlineExceeded, fault.Canceled:
		return true
	default:
		return false
	}
}

func (e *entry[V]) answer(source Source) Answer[V] {
	return Answer[V]{Value: e.value, Age: time.Since(e.fetchedAt), Source: source}
}

// recordFailure records a failed fetch. The failure is cached for the retry hint of the source, up to the TTL, if
// that is longer than life.Failure.
func (e *entry[V]) recordFailure(err error, life Lifetime, now time.Time) {
	hold := life.Failure
	if after, ok := fault.RetryAfter(err); ok {
		hold = max(hold, min(after, cmp.Or(life.TTL, maxRetryAfter)))
	}
	e.failure = err
	e.retryAt = now.Add(hold)
}

// inUse reports whether the entry is refreshed until keepFor after its last use: it has a value that expires, and its
// source did not refuse it.
func (e *entry[V]) inUse(life Lifetime, keepFor time.Duration, now time.Time) bool {
	return life.TTL > 0 && e.known && (e.failure == nil || isOutage(e.failure)) && now.Sub(e.usedAt) < keepFor
}
