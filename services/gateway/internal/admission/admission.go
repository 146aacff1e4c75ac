// SPDX-License-Identifier: Apache-2.0

// Package admission bounds how many evaluations run at once and how many wait, and
// shares both fairly between functions and between callers.
//
// A free slot is never withheld: one function may use all slots while nothing else is
// asked for. When all slots are taken:
//
//   - A function that runs nothing may start one evaluation in a small reserve, and so
//     may a caller that runs nothing. The two reserves are separate, so that a caller
//     with many functions and a function with many callers each exhaust only one.
//   - A slot that becomes free goes to the waiting request that may start in it whose
//     function and caller run the fewest evaluations, first come within those. Every
//     fourth goes to the one that has waited longest, so that each is served in the end.
//   - A full queue drops the newest request of the function and caller with the most
//     waiting requests in favour of one with fewer.
package admission

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Limits are the bounds of a Gate.
type Limits struct {
	// Concurrent is how many evaluations may run at once; less than one counts as one.
	Concurrent int
	// Reserve is how many more may run for functions that run nothing, and again as many
	// for callers that run nothing.
	Reserve int
	// Queue is how many more may wait; zero or less lets none wait.
	Queue int
}

// Claim is what a slot is wanted for.
type Claim struct {
	// Function is the function to run.
	Function string
	// Caller is who asks; empty if that is not known.
	Caller string
}

// Gate admits evaluations within its limits. It is safe for concurrent use.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	slots   slots
	waiting queue
}

// New returns a Gate.
func New(limits Limits) *Gate {
	limits = Limits{Concurrent: max(1, limits.Concurrent), Reserve: max(0, limits.Reserve), Queue: max(0, limits.Queue)}
	return &Gate{limits: limits, slots: newSlots(limits), waiting: newQueue()}
}

// Acquire waits for a slot. The caller has to call release when the evaluation has
// ended; calls after the first do nothing. If ctx ends first, the error has the class
// of ctx's. If the queue is full, the error is of class fault.Exhausted and has a retry hint.
func (g *Gate) Acquire(ctx context.Context, claim Claim) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	slot, err := g.enter(ctx, claim)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { g.leave(slot) }), nil
}

// Admit waits for a slot for an evaluation of a function by a caller, as [Gate.Acquire] does.
func (g *Gate) Admit(ctx context.Context, function, caller string) (release func(), err error) {
	return g.Acquire(ctx, Claim{Function: function, Caller: caller})
}

// ForEvaluations returns the limits of a number of concurrent evaluations: an eighth is added for functions that run
// nothing, and an eighth for callers that run nothing.
func ForEvaluations(concurrent, queue int) Limits {
	return Limits{Concurrent: concurrent, Reserve: (concurrent + 7) / 8, Queue: queue}
}

// Running returns how many evaluations have a slot now.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slots.running.total
}

// Waiting returns how many requests wait now.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.count.total
}

// enter takes a slot, or waits for one.
func (g *Gate) enter(ctx context.Context, claim Claim) (*evaluation, error) {
	slot, r, err := g.startOrQueue(claim)
	if r == nil {
		return slot, err
	}
	select {
	case err := <-r.decided:
		return r.slot, err
	case <-ctx.Done():
		g.abandon(r)
		return nil, ended(ctx)
	}
}

// startOrQueue takes a slot, or else a place in the queue: it returns the request that
// waits there, nil if none does.
func (g *Gate) startOrQueue(claim Claim) (*evaluation, *request, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slot := g.slots.take(claim); slot != nil {
		return slot, nil, nil
	}
	if g.waiting.count.total >= g.limits.Queue {
		dropped := g.waiting.displace(claim)
		if dropped == nil {
			return nil, nil, g.rejection("%d evaluations run and %d wait, which is the limit: try again later")
		}
		dropped.decided <- g.rejection("%d evaluations run and %d wait, which is the limit, " +
			"and the place in the queue went to a function or a caller with fewer requests: try again later")
	}
	return nil, g.waiting.add(claim), nil
}

// retryAfter is the retry hint of requests that have no place in the queue.
const retryAfter = time.Second

// rejection returns the error of a request that has no place in the queue. The arguments of text are the numbers of
// evaluations that run and of requests that wait.
func (g *Gate) rejection(text string) error {
	err := fault.New(fault.Exhausted, text, g.slots.running.total, g.waiting.count.total)
	return fault.WithRetryAfter(err, retryAfter)
}

// leave frees the slot of an evaluation, and starts what may start then.
func (g *Gate) leave(slot *evaluation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots.free(slot)
	for r := g.waiting.next(&g.slots); r != nil; r = g.waiting.next(&g.slots) {
		r.slot = g.slots.take(r.claim)
		r.decided <- nil
	}
}

// abandon takes a request out of the queue, or frees the slot that it was given in the
// same moment.
func (g *Gate) abandon(r *request) {
	g.mu.Lock()
	waited := g.waiting.remove(r)
	g.mu.Unlock()
	if !waited && <-r.decided == nil {
		g.leave(r.slot)
	}
}

// ended is the error for a caller whose ctx ended before its turn.
func ended(ctx context.Context) error {
	return fault.New(fault.Of(ctx.Err()), "%w", context.Cause(ctx))
}
