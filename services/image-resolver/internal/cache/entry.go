// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// outageMemory is the time for which we assume that an outage of the source continues. It starts when a retry is
	// permitted. During this time, callers receive stale entries at once instead of waiting for a source that hangs.
	outageMemory = time.Minute
	// maxRetryAfter limits the time for which a failure stays cached at the source's request. It applies to entries that
	// never expire. For all other entries, the TTL is the limit.
	maxRetryAfter = 5 * time.Minute
	// failureBytes is the assumed memory of a cached failure in bytes, in addition to the text of its error.
	failureBytes = 512
)

// Lifetime determines the time for which the cache may use an entry.
type Lifetime struct {
	// TTL is the maximum age of an entry that callers get without waiting for the source. An entry older than half
	// of the TTL is refreshed in the background when it is used. Zero means that the entry never expires.
	TTL time.Duration
	// Stale is the maximum age of an expired entry that callers may still get. They get it while the source is
	// unavailable, or if the source is slower than Config.StaleWait.
	Stale time.Duration
	// Failure is the lifetime of a cached failure. Until it expires, callers get the same error without a new fetch.
	Failure time.Duration
}

// entry is the cached value or failure of a key. The zero entry contains neither a value nor a failure.
type entry[V any] struct {
	value V
	known bool
	// outdated is true if ForgetFailures was called after the fetch of the value began. The source may now return another
	// value. Therefore, the value is refreshed at its next use, even if it never expires.
	outdated  bool
	fetchedAt time.Time
	usedAt    time.Time

	failure error
	retryAt time.Time
	// generation is the number of calls of ForgetFailures before the last fetch began. If there were more calls since
	// then, the cache ignores the failure and regards the value as outdated.
	generation int
}

// state determines how [Cache.Get] uses an entry, for example whether to return or to refresh the entry.
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
	// We assume that an outage continues for a while after retryAt. Otherwise, callers would repeatedly wait for a source
	// that hangs. A rejection of the key is not an outage. After a rejection, the stale value is no longer used.
	outage := isOutage(e.failure) && now.Before(e.retryAt.Add(outageMemory))
	switch {
	case e.known && !e.outdated && (life.TTL == 0 || age < life.TTL/2):
		return fresh
	case e.known && (life.TTL == 0 || age < life.TTL || (outage && age < life.Stale)):
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

// isOutage reports whether a failure is caused by the source instead of the key. For example, the source is
// unreachable, limits its requests, or did not answer in time.
func isOutage(err error) bool {
	switch fault.Of(err) {
	case fault.Unavailable, fault.Exhausted, fault.DeadlineExceeded, fault.Canceled:
		return true
	default:
		return false
	}
}

func (e *entry[V]) answer(source Source) Answer[V] {
	return Answer[V]{Value: e.value, Source: source}
}

// recordFailure caches the error of a failed fetch for the duration life.Failure. The source may request a longer wait
// before a retry. The error then stays cached for this wait, but not longer than the TTL.
func (e *entry[V]) recordFailure(err error, life Lifetime, now time.Time) {
	hold := life.Failure
	if after, ok := fault.RetryAfter(err); ok {
		hold = max(hold, min(after, cmp.Or(life.TTL, maxRetryAfter)))
	}
	e.failure = err
	e.retryAt = now.Add(hold)
}

// inUse reports whether the cache should refresh the entry in the background. This requires a value that can expire or
// is outdated. Its last use must be less than keepFor ago, and the source must not have rejected the key.
func (e *entry[V]) inUse(life Lifetime, keepFor time.Duration, now time.Time) bool {
	mayChange := life.TTL > 0 || e.outdated
	return mayChange && e.known && (e.failure == nil || isOutage(e.failure)) && now.Sub(e.usedAt) < keepFor
}
