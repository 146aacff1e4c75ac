// Package admission bounds how much runs at once, and how much waits for it.
package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Limits are the bounds of a Gate.
type Limits struct {
	// Concurrent is how many may run at once; less than one counts as one.
	Concurrent int
	// Queue is how many more may wait; zero or less lets none wait.
	Queue int
}

// Gate admits callers first come, first served, within its limits.
type Gate struct {
	limits           Limits
	slots            *semaphore.Weighted // first in, first out
	running, waiting atomic.Int64
	service          serviceTime
}

// New returns a Gate that nobody has passed yet.
func New(limits Limits) *Gate {
	limits = Limits{Concurrent: max(1, limits.Concurrent), Queue: max(0, limits.Queue)}
	return &Gate{limits: limits, slots: semaphore.NewWeighted(int64(limits.Concurrent))}
}

// Acquire admits the caller, who has to call release when done; calls after the first
// do nothing. If all slots are taken it waits in the queue until ctx ends, and then
// returns an error of the class of ctx's. If the queue is full it returns at once an
// error of class fault.Exhausted, with a hint when to try again: the time that the
// queue needs to empty, judged by how long recent callers took.
func (g *Gate) Acquire(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, left(ctx)
	}
	if !g.slots.TryAcquire(1) {
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
	g.running.Add(1)
	start := time.Now()
	return sync.OnceFunc(func() {
		g.service.observe(time.Since(start))
		g.running.Add(-1)
		g.slots.Release(1)
	}), nil
}

// Running returns how many callers are admitted now.
func (g *Gate) Running() int { return int(g.running.Load()) }

// Waiting returns how many callers wait now.
func (g *Gate) Waiting() int { return int(g.waiting.Load()) }

// wait takes a place in the queue, if there is one, until there is a slot.
func (g *Gate) wait(ctx context.Context) error {
	if !g.queue() {
		err := fault.New(fault.Exhausted, "%d evaluations run and %d wait, which is the limit: try again later",
			g.limits.Concurrent, g.limits.Queue)
		return fault.WithRetryAfter(err, g.service.untilEmpty(g.limits))
	}
	defer g.waiting.Add(-1)
	if err := g.slots.Acquire(ctx, 1); err != nil {
		return left(ctx)
	}
	return nil
}

// queue counts the caller as waiting, unless the queue is full.
func (g *Gate) queue() bool {
	for {
		n := g.waiting.Load()
		if n >= int64(g.limits.Queue) {
			return false
		}
		if g.waiting.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// left is the error for a caller whose ctx ended before its turn.
func left(ctx context.Context) error {
	return fault.New(fault.Of(ctx.Err()), "%w", context.Cause(ctx))
}
