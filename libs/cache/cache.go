// SPDX-License-Identifier: Apache-2.0

// Package cache keeps what a source answered within a bound of bytes, fetches each missing
// entry once for all callers, and refreshes entries in use before they expire.
//
// A fetch belongs to all callers that wait for it: it goes on while one of them waits, and ends
// when none does, when its own time is over, or with the cache.
package cache

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Config is the bounds of a cache.
type Config[K comparable, V any] struct {
	// MaxBytes bounds the entries, as Size counts them.
	MaxBytes int64
	// Size returns the memory that a key and its value need, in bytes.
	Size func(K, V) int64
	// MaxFetches bounds how many keys are fetched at a time.
	MaxFetches int
	// MaxRefreshes is the number of fetches at which no refresh is started; zero is
	// MaxFetches.
	MaxRefreshes int
	// FetchTimeout bounds one fetch.
	FetchTimeout time.Duration
	// StaleWait is how long a fetch may take until its callers get a stale entry, if there
	// is one: a source that hangs delays no caller for longer.
	StaleWait time.Duration
	// Keeping is for queries with Keep.
	Keeping Keeping
}

// Query asks for the value of a key.
type Query[K comparable, V any] struct {
	Key      K
	Lifetime Lifetime
	// Fetch gets the value from its source. Its errors have fault classes.
	Fetch func(ctx context.Context) (V, error)
	// Renew asks for a fetch even if there is an entry.
	Renew bool
	// Keep refreshes the entry while it is in use: see [Keeping].
	Keep bool
	// CallerDeadline gives a fetch that a caller waits for that caller's deadline, for
	// sources that answer what they know so far shortly before it. Callers with more time
	// start another fetch then.
	CallerDeadline bool
}

// Answer is what a query found.
type Answer[V any] struct {
	Value V
	// Age is how long ago the source gave the value.
	Age time.Duration
	// Source is how the value was found.
	Source Source
}

// Source is how an answer was found.
type Source string

// The sources of answers. Metrics have them as labels.
const (
	Hit     Source = "hit"     // an entry
	Refresh Source = "renewal" // an entry that is being fetched again in the background
	Failure Source = "failure" // a remembered failure
	Miss    Source = "miss"    // fetched
)

// Cache keeps values of type V, which are shared: they must not be changed. Use [New].
type Cache[K comparable, V any] struct {
	cfg     Config[K, V]
	running sync.WaitGroup

	mu      sync.Mutex
	entries *simplelru.LRU[K, *entry[V]]
	bytes   int64
	fetches map[K]*fetch[V]
	kept    *simplelru.LRU[K, kept[K, V]] // nil if none are
	stopped bool
	// forgotten is how often failures were forgotten.
	forgotten int
}

// New returns an empty cache.
func New[K comparable, V any](cfg Config[K, V]) *Cache[K, V] {
	if cfg.MaxRefreshes == 0 {
		cfg.MaxRefreshes = cfg.MaxFetches
	}
	c := &Cache[K, V]{cfg: cfg, fetches: make(map[K]*fetch[V]), kept: newKept[K, V](cfg.Keeping)}
	evicted := func(key K, e *entry[V]) { c.bytes -= c.size(key, e) }
	// The only error is a size below one.
	c.entries, _ = simplelru.NewLRU(math.MaxInt, evicted)
	return c
}

// Cached returns an entry that [Cache.Get] would return without waiting, and starts its refresh
// if that is due.
func (c *Cache[K, V]) Cached(ctx context.Context, q Query[K, V]) (Answer[V], bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use(q, now)
	return c.cached(ctx, q, c.entry(q.Key), now)
}

// Get answers q. It waits for a fetch only if it has to, and no longer than StaleWait if there
// is a stale entry. It returns a little before ctx ends, unless q.CallerDeadline has the source
// do so. Errors are those of q.Fetch, the progress of a fetch for which ctx was too short (see
// [Progress]) or else ctx's own, fault.Exhausted if there are too many fetches already, and
// fault.Unavailable for a fetch that took too long.
func (c *Cache[K, V]) Get(ctx context.Context, q Query[K, V]) (Answer[V], error) {
	for {
		answer, err := c.get(ctx, q)
		if !errors.Is(err, errStarterLeft) || ctx.Err() != nil {
			return answer, err
		}
	}
}

func (c *Cache[K, V]) get(ctx context.Context, q Query[K, V]) (Answer[V], error) {
	now := time.Now()
	c.mu.Lock()
	c.use(q, now)
	e := c.entry(q.Key)
	if answer, ok := c.cached(ctx, q, e, now); ok {
		c.mu.Unlock()
		return answer, nil
	}
	verdict := e.decide(q.Lifetime, now)
	if verdict == failed && !q.Renew {
		defer c.mu.Unlock()
		return Answer[V]{Source: Failure}, e.failure
	}
	isStale := verdict == stale && !q.Renew
	if isStale {
		c.refresh(ctx, q) // so that the fetch goes on when its callers have left
	}
	f, starter, err := c.join(ctx, q, false)
	c.mu.Unlock()
	if !q.CallerDeadline {
		var cancel context.CancelFunc
		ctx, cancel = retry.EarlyDeadline(ctx) // leaves time to report what it was spent on
		defer cancel()
	}
	switch {
	case isStale && err != nil:
		return e.answer(Hit, now), nil
	case err != nil:
		return Answer[V]{Source: Miss}, err
	case isStale && !c.soon(ctx, f):
		c.stopWaiting(f)
		return e.answer(Refresh, time.Now()), nil
	}
	return c.await(ctx, q, f, starter)
}

// cached is Cached. c is locked.
func (c *Cache[K, V]) cached(ctx context.Context, q Query[K, V], e *entry[V], now time.Time) (Answer[V], bool) {
	if q.Renew {
		return Answer[V]{}, false
	}
	switch e.decide(q.Lifetime, now) {
	case fresh:
		return e.answer(Hit, now), true
	case aging:
		if c.refresh(ctx, q) {
			return e.answer(Refresh, now), true
		}
		return e.answer(Hit, now), true
	default:
		return Answer[V]{}, false
	}
}

// soon waits until f or ctx ends, and reports whether that was within StaleWait.
func (c *Cache[K, V]) soon(ctx context.Context, f *fetch[V]) bool {
	timer := time.NewTimer(c.cfg.StaleWait - time.Since(f.since))
	defer timer.Stop()
	select {
	case <-f.done:
	case <-ctx.Done():
	case <-timer.C:
		return false
	}
	return true
}

// await waits for f. A stale entry is the answer if the source is unavailable.
func (c *Cache[K, V]) await(ctx context.Context, q Query[K, V], f *fetch[V], starter bool) (Answer[V], error) {
	value, err := c.wait(ctx, q.Key, f, starter)
	if err == nil {
		return Answer[V]{Value: value, Source: Miss}, nil
	}
	if ctx.Err() != nil || q.Renew {
		return Answer[V]{Source: Miss}, err
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entry(q.Key); e.usable(q.Lifetime, now) {
		return e.answer(Hit, now), nil
	}
	return Answer[V]{Source: Miss}, err
}

// Run keeps entries in use until ctx ends, then ends all fetches and returns when they have
// ended. The cache fetches nothing after that.
func (c *Cache[K, V]) Run(ctx context.Context) error {
	c.keep(ctx)
	c.mu.Lock()
	c.stopped = true
	for _, f := range c.fetches {
		f.cancel(errStopping)
	}
	c.mu.Unlock()
	c.running.Wait()
	return nil
}
