package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// flight is one fetch, however many wait for it.
type flight[V any] struct {
	cancel context.CancelCauseFunc
	// since is when it began, and forgotten how often failures had been forgotten then.
	since     time.Time
	forgotten int
	// waiting is how many want the result. A background refresh counts as one
	// that never leaves.
	waiting int
	// word is what the source said last, while the fetch goes on.
	word atomic.Pointer[error]

	// done is closed when value and err are set.
	done  chan struct{}
	value V
	err   error
}

// The reasons why a fetch is ended from outside.
var (
	errAbandoned = errors.New("nobody waits for the answer any more")
	errTimeout   = errors.New("no answer in time")
	errStopping  = errors.New("the resolver is stopping")
)

// join returns the flight for q's key, a new one if there is none. c is locked.
func (c *Cache[V]) join(ctx context.Context, q Query[V]) (*flight[V], error) {
	if f, ok := c.flights[q.Key]; ok {
		f.waiting++
		return f, nil
	}
	if len(c.flights) >= c.cfg.MaxFetches {
		err := fault.New(fault.Exhausted, "%d answers are being fetched already, which is the limit", len(c.flights))
		return nil, fault.WithRetryAfter(err, retryWhenFull)
	}
	if c.stopped {
		return nil, fault.New(fault.Unavailable, "%w", errStopping)
	}
	// The fetch keeps the first caller's trace, but not its deadline: others wait
	// for the same answer.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight[V]{cancel: cancel, since: time.Now(), forgotten: c.forgotten, waiting: 1, done: make(chan struct{})}
	c.flights[q.Key] = f
	ctx = context.WithValue(ctx, listener{}, &f.word)
	c.running.Go(func() { c.fetch(ctx, q, f) })
	return f, nil
}

// fetch runs q's fetch and settles f.
func (c *Cache[V]) fetch(ctx context.Context, q Query[V], f *flight[V]) {
	defer f.cancel(nil)
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.FetchTimeout, errTimeout)
	defer cancel()
	value, err := q.Fetch(limited)
	if err != nil {
		err = c.blame(context.Cause(limited), f.heard(err))
	}
	c.settle(q, f, value, err)
}

// blame returns err as what ended the fetch from outside made of it.
func (c *Cache[V]) blame(cause, err error) error {
	switch {
	case errors.Is(cause, errTimeout):
		return fault.New(fault.Unavailable, "%s (after %v): %w", errTimeout, c.cfg.FetchTimeout, err)
	case errors.Is(cause, errStopping):
		return fault.New(fault.Unavailable, "%s: %w", errStopping, err)
	}
	return err
}

// settle notes what f brought and tells those who wait.
func (c *Cache[V]) settle(q Query[V], f *flight[V], value V, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// An abandoned flight is not in the map any more: its failure says nothing. Nor does
	// one that may be for what has changed since.
	if c.flights[q.Key] == f {
		delete(c.flights, q.Key)
		if err == nil || f.forgotten == c.forgotten {
			c.note(q, value, err)
		}
	}
	f.value, f.err = value, err
	close(f.done)
}

// wait waits for f, no longer than ctx.
func (c *Cache[V]) wait(ctx context.Context, key string, f *flight[V]) (V, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		c.leave(key, f)
		var none V
		return none, f.unanswered(ctx.Err())
	}
}

// leave gives up waiting for f, and ends it if nobody else waits.
func (c *Cache[V]) leave(key string, f *flight[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 && c.flights[key] == f {
		delete(c.flights, key)
		f.cancel(errAbandoned)
	}
}
