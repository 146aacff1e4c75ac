package cache

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Lifetime says how long an answer holds.
type Lifetime struct {
	// TTL is how long an answer is given without asking again; zero is for ever.
	TTL time.Duration
	// Refresh is the age from which an answer that is asked for is also fetched
	// anew in the background; it is less than TTL.
	Refresh time.Duration
	// Stale is the age up to which an answer is given if a new one cannot be had
	// because its source is unavailable.
	Stale time.Duration
	// Failure is how long a failed fetch is not tried again.
	Failure time.Duration
}

// verdict is what to do when a key is asked for.
type verdict int

const (
	absent  verdict = iota // fetch, and wait for it
	present                // give the answer
	aging                  // give the answer, and fetch a new one in the background
	failing                // give the failure
)

// record is what is known of a key. The zero record knows nothing.
type record[V any] struct {
	value     V
	known     bool
	fetchedAt time.Time

	failure error
	retryAt time.Time
}

// judge says what to do with r at that time.
func (r *record[V]) judge(life Lifetime, now time.Time) verdict {
	held := r.failure != nil && now.Before(r.retryAt)
	age := now.Sub(r.fetchedAt)
	switch {
	case r.known && (life.TTL == 0 || age < life.Refresh):
		return present
	case r.known && age < life.TTL:
		if held {
			return present
		}
		return aging
	case !held:
		return absent
	case r.known && r.usableWhenStale(age, life):
		return present
	default:
		return failing
	}
}

// usableWhenStale says whether a value that is past its TTL is better than the
// failure: only while the source is away, not after it said no.
func (r *record[V]) usableWhenStale(age time.Duration, life Lifetime) bool {
	return fault.Of(r.failure) == fault.Unavailable && age < life.Stale
}

// succeed notes a fetched value.
func (r *record[V]) succeed(value V, now time.Time) {
	*r = record[V]{value: value, known: true, fetchedAt: now}
}

// fail notes a failed fetch. A source that says when to come back is not asked
// before, unless that is longer than an answer would hold.
func (r *record[V]) fail(err error, life Lifetime, now time.Time) {
	hold := life.Failure
	if after, ok := fault.RetryAfter(err); ok {
		hold = max(hold, min(after, life.TTL))
	}
	r.failure, r.retryAt = err, now.Add(hold)
}
