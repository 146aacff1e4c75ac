// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// outageMemory is how long after the next fetch was due an outage still counts: callers
	// get stale entries without waiting, since the source would hang or fail.
	outageMemory = time.Minute
	// maxRetryAfter bounds how long a source is not asked where entries never expire.
	maxRetryAfter = 5 * time.Minute
)

// Lifetime is how long an entry is used.
type Lifetime struct {
	// TTL is the age up to which an entry is returned without waiting for its source; zero
	// is any age.
	TTL time.Duration
	// Refresh is the age from which an entry that is asked for is also fetched again in the
	// background; it is less than TTL.
	Refresh time.Duration
	// Stale is the age up to which an entry is returned if a new one cannot be had because
	// its source is unavailable, or does not come within [Config.StaleWait].
	Stale time.Duration
	// Failure is how long a failed fetch is not tried again, and Outage the same where the source could
	// not answer; zero is Failure.
	Failure, Outage time.Duration
	// RemoteFailures is for sources that remember failures themselves. A refusal then
	// removes the entry at once, and not when its TTL is over, and a failure is returned
	// only to the callers that waited for it.
	RemoteFailures bool
}

// verdict is what to do when a key is asked for.
type verdict int

const (
	absent verdict = iota // fetch, and wait for it
	stale                 // fetch, wait for it up to StaleWait, then return the entry
	fresh                 // return the entry
	aging                 // return the entry, and refresh it
	failed                // return the failure
)

// entry is what is known of a key. The zero entry knows nothing.
type entry[V any] struct {
	value     V
	known     bool
	fetchedAt time.Time

	failure error
	retryAt time.Time
}

// decide returns what to do with e at that time.
func (e *entry[V]) decide(life Lifetime, now time.Time) verdict {
	held := e.failure != nil && now.Before(e.retryAt)
	age := now.Sub(e.fetchedAt)
	switch {
	case e.known && (life.TTL == 0 || age < life.Refresh):
		return fresh
	case e.usable(life, now):
		if held {
			return fresh
		}
		return aging
	case held:
		return failed
	case e.known && (e.failure == nil || isOutage(e.failure)) && age < life.Stale:
		return stale
	default:
		return absent
	}
}

// usable reports whether e has a value that may be returned without asking the source: one
// within its TTL, or a stale one during an outage. An outage lasts beyond retryAt, or callers
// would wait for a source that hangs, over and over. A refusal ends the use of a stale value.
func (e *entry[V]) usable(life Lifetime, now time.Time) bool {
	age := now.Sub(e.fetchedAt)
	outage := isOutage(e.failure) && now.Before(e.retryAt.Add(outageMemory))
	return e.known && (life.TTL == 0 || age < life.TTL || outage && age < life.Stale)
}

// isOutage reports whether a failure has no meaning for what was asked for: the source cannot
// be reached, limits how often it is asked, or had too little time.
func isOutage(err error) bool {
	switch fault.Of(err) {
	case fault.Unavailable, fault.Exhausted, fault.DeadlineExceeded, fault.Canceled:
		return true
	default:
		return false
	}
}

// answer returns the value, found in that way.
func (e *entry[V]) answer(source Source, now time.Time) Answer[V] {
	return Answer[V]{Value: e.value, Age: now.Sub(e.fetchedAt), Source: source}
}

// succeed records a fetched value.
func (e *entry[V]) succeed(value V, now time.Time) {
	*e = entry[V]{value: value, known: true, fetchedAt: now}
}

// fail records a failed fetch. A source that gave a retry hint is not asked
// before, unless that is longer than an entry would be used.
func (e *entry[V]) fail(err error, life Lifetime, now time.Time) {
	hold := life.Failure
	if isOutage(err) {
		hold = cmp.Or(life.Outage, life.Failure)
	}
	if after, ok := fault.RetryAfter(err); ok {
		hold = max(hold, min(after, cmp.Or(life.TTL, maxRetryAfter)))
	}
	e.failure, e.retryAt = err, now.Add(hold)
}
