// Package cache keeps answers within a bound of bytes, fetches each missing one
// once however many ask, and renews those in use before they end.
//
// A fetch belongs to everybody who waits for it: it goes on while one of them
// does, and ends when none does, when its own time is over, or with the cache.
package cache

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/krm-function-runner/function-runner/libs/deadline"
)

// Patience is how long a fetch may take until those who wait for it are given a
// stale answer, if there is one. A source that is well answers within it; one that
// hangs holds up nobody for longer.
const Patience = 2 * time.Second

// retryWhenFull is the hint for callers that found too many fetches.
const retryWhenFull = time.Second

// Config is the bounds of a cache.
type Config[V any] struct {
	// MaxBytes bounds what is kept, as Size counts it.
	MaxBytes int64
	// MaxFetches bounds how many keys are fetched at a time.
	MaxFetches int
	// FetchTimeout bounds one fetch.
	FetchTimeout time.Duration
	// Size returns what a value takes in memory, in bytes.
	Size func(V) int64
}

// Query asks for the answer of a key.
type Query[V any] struct {
	Key      string
	Lifetime Lifetime
	// Fetch gets the answer from its source.
	Fetch func(ctx context.Context) (V, error)
	// Renew asks for a fetch even if there is an answer.
	Renew bool
}

// Answer is what a query found.
type Answer[V any] struct {
	Value V
	// Age is how long ago the source gave the value.
	Age time.Duration
	// Source says how it was found.
	Source Source
}

// Source is how an answer was found.
type Source string

// The sources of answers.
const (
	Hit     Source = "hit"     // kept
	Renewal Source = "renewal" // kept, and being fetched anew in the background
	Failure Source = "failure" // a kept failure
	Miss    Source = "miss"    // fetched
)

// Cache keeps answers of type V. Values are shared: nobody may change them.
type Cache[V any] struct {
	cfg     Config[V]
	running sync.WaitGroup

	mu      sync.Mutex
	records *simplelru.LRU[string, *record[V]]
	bytes   int64
	flights map[string]*flight[V]
	stopped bool
	// forgotten is how often failures were forgotten.
	forgotten int
}

// New returns an empty cache.
func New[V any](cfg Config[V]) *Cache[V] {
	c := &Cache[V]{cfg: cfg, flights: make(map[string]*flight[V])}
	evicted := func(key string, r *record[V]) { c.bytes -= c.size(key, r) }
	// The only error is a size below one.
	c.records, _ = simplelru.NewLRU(math.MaxInt, evicted)
	return c
}

// Get answers q. It waits for a fetch only if it has to, a little less than ctx lasts,
// and no longer than [Patience] if a stale answer will do. Errors are those of q.Fetch,
// what it told so far if ctx ends before it (see [Tell]) or else ctx's own,
// fault.Exhausted if too much is being fetched already, and fault.Unavailable for a
// fetch that took too long.
func (c *Cache[V]) Get(ctx context.Context, q Query[V]) (Answer[V], error) {
	now := time.Now()
	c.mu.Lock()
	r, ok := c.records.Get(q.Key)
	if !ok {
		r = new(record[V])
	}
	verdict := r.judge(q.Lifetime, now)
	if q.Renew {
		verdict = absent
	}
	switch verdict {
	case present, aging:
		defer c.mu.Unlock()
		answer := r.answer(Hit, now)
		if verdict == aging && c.renew(ctx, q) {
			answer.Source = Renewal
		}
		return answer, nil
	case failing:
		defer c.mu.Unlock()
		return Answer[V]{Source: Failure}, r.failure
	case late:
		c.renew(ctx, q) // it goes on though nobody may have the patience to wait for it
	case absent:
	}
	f, err := c.join(ctx, q)
	c.mu.Unlock()
	ctx, cancel := deadline.Early(ctx) // with time for a word of what it was spent on
	defer cancel()
	switch {
	case verdict == late && err != nil:
		return r.answer(Hit, now), nil
	case err != nil:
		return Answer[V]{Source: Miss}, err
	case verdict == late && !c.soon(ctx, f):
		return r.answer(Renewal, time.Now()), nil
	}
	return c.await(ctx, q, f)
}

// soon waits until f is over or ctx is, and says whether that was before f had used
// up the patience of those who wait.
func (c *Cache[V]) soon(ctx context.Context, f *flight[V]) bool {
	select {
	case <-f.done:
	case <-ctx.Done():
	case <-time.After(Patience - time.Since(f.since)):
		return false
	}
	return true
}

// await waits for f. If the source is away, a stale answer is better than none.
func (c *Cache[V]) await(ctx context.Context, q Query[V], f *flight[V]) (Answer[V], error) {
	value, err := c.wait(ctx, q.Key, f)
	if err == nil {
		return Answer[V]{Value: value, Source: Miss}, nil
	}
	if ctx.Err() != nil || q.Renew {
		return Answer[V]{Source: Miss}, err
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.records.Get(q.Key); ok && r.usable(q.Lifetime, now) {
		return r.answer(Hit, now), nil
	}
	return Answer[V]{Source: Miss}, err
}

// renew starts a fetch in the background, unless one runs or too many do. It says
// whether it did. c is locked.
func (c *Cache[V]) renew(ctx context.Context, q Query[V]) bool {
	if _, running := c.flights[q.Key]; running {
		return false
	}
	_, err := c.join(ctx, q)
	return err == nil
}

// Run waits for ctx to end, then ends all fetches and returns when they have
// ended. The cache fetches nothing after that.
func (c *Cache[V]) Run(ctx context.Context) error {
	<-ctx.Done()
	c.mu.Lock()
	c.stopped = true
	for _, f := range c.flights {
		f.cancel(errStopping)
	}
	c.mu.Unlock()
	c.running.Wait()
	return nil
}
