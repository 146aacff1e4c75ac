// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// outageMemory is the time for which the cache assumes an outage to last after retryAt. Until then, callers get
	// stale entries without waiting, because the source would hang or fail.
	outageMemory = time.Minute
	// maxRetryAfter limits the retry hint of a source if its entries never expire. Otherwise the TTL limits it.
	maxRetryAfter = 5 * time.Minute
	// keepInterval is the interval between two searches for entries to refresh. The fetches after a search are spread
	// over the interval.
	keepInterval = time.Minute
	// entryBytes is the memory of an entry without its key and value: its list element, its share of the map and the
	// struct.
	entryBytes = 344
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

// stateAt returns the state of e at a time.
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

// answer returns the value.
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

// useEntry returns the entry of a key and records its use. It returns a zero entry if there is none. c must be
// locked.
func (c *Cache[K, V]) useEntry(key K) *entry[V] {
	e, ok := c.entries.Get(key)
	if !ok {
		return new(entry[V])
	}
	e.usedAt = time.Now()
	return e
}

// Peek returns the value of a key's entry, even if the entry has expired.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries.Get(key)
	if !ok {
		return value, false
	}
	return e.value, e.known
}

// Put stores value for key as if it had been fetched now.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storeResult(key, value, nil)
}

// storeResult stores the result of a fetch, and then evicts the least recently used entries while the cache exceeds
// MaxBytes. A result larger than MaxBytes is not stored and evicts nothing. c must be locked.
func (c *Cache[K, V]) storeResult(key K, value V, err error) {
	now := time.Now()
	e := &entry[V]{usedAt: now}
	if old, ok := c.entries.Peek(key); ok {
		*e = *old // callers may still read the old entry
		c.entries.Remove(key)
	}
	if err == nil {
		*e = entry[V]{value: value, known: true, fetchedAt: now, usedAt: e.usedAt}
	} else {
		e.recordFailure(err, c.cfg.Lifetime(key), now)
	}
	size := c.sizeOf(key, e)
	if size > c.cfg.MaxBytes {
		return
	}
	c.entries.Add(key, e)
	c.bytes += size
	for c.bytes > c.cfg.MaxBytes {
		c.entries.RemoveOldest()
	}
}

// sizeOf returns the memory of an entry.
func (c *Cache[K, V]) sizeOf(key K, e *entry[V]) int64 {
	n := entryBytes + c.cfg.Size(key, e.value)
	if e.failure != nil {
		n += failureBytes + 2*int64(len(e.failure.Error())) // its text and the texts that it wraps
	}
	return n
}

// Bytes returns the memory of all entries.
func (c *Cache[K, V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// ForgetFailures removes all cached failures and prevents running fetches from caching theirs, for callers that have
// removed a possible cause. Values stay.
func (c *Cache[K, V]) ForgetFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	for _, key := range c.entries.Keys() {
		e, _ := c.entries.Peek(key)
		switch {
		case e.failure == nil:
		case !e.known:
			c.entries.Remove(key)
		default:
			c.bytes -= c.sizeOf(key, e)
			e.failure = nil
			c.bytes += c.sizeOf(key, e)
		}
	}
}

// keepRefreshed refreshes entries in use until ctx is done. A random first wait spreads the refreshes of programs that
// started together.
func (c *Cache[K, V]) keepRefreshed(ctx context.Context) {
	if c.cfg.KeepFor == 0 {
		<-ctx.Done()
		return
	}
	for wait := rand.N(keepInterval); retry.Sleep(ctx, wait); { //nolint:gosec // no secret
		due := c.dueKeys(time.Now())
		wait = keepInterval / time.Duration(len(due)+1)
		for _, key := range due {
			c.mu.Lock()
			c.startRefresh(ctx, key)
			c.mu.Unlock()
			if !retry.Sleep(ctx, wait) {
				return
			}
		}
	}
}

// dueKeys returns the keys of the entries to refresh: they are among the MaxKept entries in use and older than half
// of their TTL.
func (c *Cache[K, V]) dueKeys(now time.Time) []K {
	type used struct {
		key K
		at  time.Time
		due bool
	}
	c.mu.Lock()
	var inUse []used
	for _, key := range c.entries.Keys() {
		e, _ := c.entries.Peek(key)
		life := c.cfg.Lifetime(key)
		refused := e.failure != nil && !isOutage(e.failure)
		if life.TTL > 0 && e.known && !refused && now.Sub(e.usedAt) < c.cfg.KeepFor {
			due := now.Sub(e.fetchedAt) >= life.TTL/2 && !now.Before(e.retryAt)
			inUse = append(inUse, used{key, e.usedAt, due})
		}
	}
	c.mu.Unlock()
	slices.SortFunc(inUse, func(a, b used) int { return b.at.Compare(a.at) })
	var keys []K
	for _, u := range inUse[:min(len(inUse), c.cfg.MaxKept)] {
		if u.due {
			keys = append(keys, u.key)
		}
	}
	return keys
}
