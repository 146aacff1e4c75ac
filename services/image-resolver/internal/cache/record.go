package cache

import (
	"cmp"
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
	// because its source is unavailable, or does not come within [Patience].
	Stale time.Duration
	// Failure is how long a failed fetch is not tried again.
	Failure time.Duration
}

// verdict is what to do when a key is asked for.
type verdict int

const (
	absent  verdict = iota // fetch, and wait for it
	late                   // fetch, and wait for it a little: then the old answer will do
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
	case r.usable(life, now):
		if held {
			return present
		}
		return aging
	case held:
		return failing
	case r.known && r.failure == nil && age < life.Stale:
		return late
	default:
		return absent
	}
}

// usable says whether r has a value that may be given without asking the source:
// one within its TTL, or a stale one while the source is known to be away. It stays
// so when the failure is not held any more, or callers would wait for a source that
// hangs, over and over. After the source said no a stale value counts for nothing.
func (r *record[V]) usable(life Lifetime, now time.Time) bool {
	age := now.Sub(r.fetchedAt)
	away := isAway(r.failure)
	return r.known && (life.TTL == 0 || age < life.TTL || away && age < life.Stale)
}

// isAway says whether a failure says nothing of what was asked for: the source cannot be
// reached, or does not want to be asked so often.
func isAway(err error) bool {
	class := fault.Of(err)
	return class == fault.Unavailable || class == fault.Exhausted
}

// answer returns the value, found in that way.
func (r *record[V]) answer(source Source, now time.Time) Answer[V] {
	return Answer[V]{Value: r.value, Age: now.Sub(r.fetchedAt), Source: source}
}

// succeed notes a fetched value.
func (r *record[V]) succeed(value V, now time.Time) {
	*r = record[V]{value: value, known: true, fetchedAt: now}
}

// maxHint bounds how long a source is not asked where answers hold for ever.
const maxHint = 5 * time.Minute

// fail notes a failed fetch. A source that says when to come back is not asked
// before, unless that is longer than an answer would hold.
func (r *record[V]) fail(err error, life Lifetime, now time.Time) {
	hold := life.Failure
	if after, ok := fault.RetryAfter(err); ok {
		hold = max(hold, min(after, cmp.Or(life.TTL, maxHint)))
	}
	r.failure, r.retryAt = err, now.Add(hold)
}
