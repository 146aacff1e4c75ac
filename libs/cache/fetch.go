// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// retryWhenFull is the hint for callers that found too many fetches.
const retryWhenFull = time.Second

// fetch is one fetch, for all callers that wait for it.
type fetch[V any] struct {
	cancel context.CancelCauseFunc
	// since is when it began, and forgotten how often failures had been forgotten then.
	since     time.Time
	forgotten int
	// waiting is how many callers want the result. A refresh counts as one that never leaves.
	waiting int
	// deadline is the starter's, or zero.
	deadline time.Time
	// progress is what the source reported last.
	progress atomic.Pointer[error]

	// done is closed when the result is set.
	done  chan struct{}
	value V
	err   error
	// starterErr is for the starter alone, whose deadline ended the fetch. The others get
	// errStarterLeft.
	starterErr error
	panicked   any
}

// The reasons why a fetch is ended from outside.
var (
	errAbandoned   = errors.New("no caller waits for the answer any more")
	errTimeout     = errors.New("no answer in time")
	errStopping    = errors.New("the program is stopping")
	errStarterLeft = errors.New("the caller that started the fetch has left")
)

// entry returns the entry of a key, or a zero one. c is locked.
func (c *Cache[K, V]) entry(key K) *entry[V] {
	if e, ok := c.entries.Get(key); ok {
		return e
	}
	return new(entry[V])
}

// refresh starts a fetch in the background, unless one runs or too many do, and reports
// whether it did. c is locked.
func (c *Cache[K, V]) refresh(ctx context.Context, q Query[K, V]) bool {
	if _, running := c.fetches[q.Key]; running || len(c.fetches) >= c.cfg.MaxRefreshes {
		return false
	}
	_, _, err := c.join(ctx, q, true)
	return err == nil
}

// join returns the fetch for q's key, a new one if there is none. c is locked.
func (c *Cache[K, V]) join(
	ctx context.Context,
	q Query[K, V],
	background bool,
) (f *fetch[V], starter bool, err error) {
	if f, ok := c.fetches[q.Key]; ok {
		f.waiting++
		return f, false, nil
	}
	if len(c.fetches) >= c.cfg.MaxFetches {
		err := fault.New(fault.Exhausted, "%d answers are being fetched already, which is the limit", len(c.fetches))
		return nil, false, fault.WithRetryAfter(err, retryWhenFull)
	}
	if c.stopped {
		return nil, false, fault.New(fault.Unavailable, "%w", errStopping)
	}
	return c.start(ctx, q, background), true, nil
}

// start starts a fetch for q's key, with one caller. c is locked.
func (c *Cache[K, V]) start(ctx context.Context, q Query[K, V], background bool) *fetch[V] {
	f := &fetch[V]{since: time.Now(), forgotten: c.forgotten, waiting: 1, done: make(chan struct{})}
	if end, ok := ctx.Deadline(); ok && q.CallerDeadline && !background && time.Until(end) < c.cfg.FetchTimeout {
		f.deadline = end
	}
	// The fetch keeps the starter's trace, but not its end: other callers wait for the same
	// answer.
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.fetches[q.Key] = f
	ctx = context.WithValue(ctx, progressKey{}, &f.progress)
	c.running.Go(func() { c.run(ctx, q, f) })
	return f
}

// run runs q's fetch and finishes f.
func (c *Cache[K, V]) run(ctx context.Context, q Query[K, V], f *fetch[V]) {
	defer f.cancel(nil)
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.FetchTimeout, errTimeout)
	defer cancel()
	if !f.deadline.IsZero() {
		limited, cancel = context.WithDeadline(limited, f.deadline)
		defer cancel()
	}
	value, err := f.call(limited, q.Fetch)
	if err != nil && !f.deadline.IsZero() && isTimeOver(limited, err) {
		f.starterErr, err = err, errStarterLeft
	} else if err != nil {
		err = c.blame(context.Cause(limited), f.withProgress(err))
	}
	c.finish(q, f, value, err)
}

// call calls fetch. A panic is for the callers that wait: one of them may recover from it.
func (f *fetch[V]) call(ctx context.Context, fetch func(context.Context) (V, error)) (value V, err error) {
	defer func() {
		if f.panicked = recover(); f.panicked != nil {
			err = fault.New(fault.Internal, "the fetch panicked: %v", f.panicked)
		}
	}()
	return fetch(ctx)
}

// isTimeOver reports whether err is about the little time that ctx had: the source reports what it
// knows so far shortly before the deadline, which is no answer for callers with more time.
func isTimeOver(ctx context.Context, err error) bool {
	if class := fault.Of(err); class == fault.DeadlineExceeded || class == fault.Canceled || ctx.Err() != nil {
		return true
	}
	return isOutage(err) && retry.NearDeadline(ctx)
}

// blame returns err with what ended the fetch from outside.
func (c *Cache[K, V]) blame(cause, err error) error {
	switch {
	case errors.Is(cause, errTimeout):
		return fault.New(fault.Unavailable, "%s (after %v): %w", errTimeout, c.cfg.FetchTimeout, err)
	case errors.Is(cause, errStopping):
		return fault.New(fault.Unavailable, "%s: %w", errStopping, err)
	}
	return err
}

// finish stores what f brought and wakes its callers.
func (c *Cache[K, V]) finish(q Query[K, V], f *fetch[V], value V, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// An abandoned fetch is not in the map any more, and its failure is ignored. So is
	// one whose cause may have changed since, or for which the starter had too little time.
	if c.fetches[q.Key] == f {
		delete(c.fetches, q.Key)
		if err == nil || f.forgotten == c.forgotten && f.starterErr == nil {
			c.store(q, value, err)
		}
	}
	f.value, f.err = value, err
	close(f.done)
}

// wait waits for f, no longer than ctx.
func (c *Cache[K, V]) wait(ctx context.Context, key K, f *fetch[V], starter bool) (none V, err error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		c.leave(key, f)
		return none, f.unanswered(ctx.Err())
	}
	switch {
	case f.panicked != nil:
		panic(f.panicked)
	case starter && f.starterErr != nil:
		return none, fmt.Errorf("%w", f.starterErr)
	}
	return f.value, f.err
}

// leave gives up waiting for f, and ends it if no other caller waits.
func (c *Cache[K, V]) leave(key K, f *fetch[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 && c.fetches[key] == f {
		delete(c.fetches, key)
		f.cancel(errAbandoned)
	}
}

// stopWaiting gives up waiting for a fetch that goes on.
func (c *Cache[K, V]) stopWaiting(f *fetch[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiting--
}
