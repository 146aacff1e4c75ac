// SPDX-License-Identifier: Apache-2.0

// Package admission limits the numbers of running and of queued evaluations, and shares both fairly between functions
// and between callers.
//
// A free slot is never withheld: a function may use all slots while no other function needs a slot. The following
// rules apply while all slots are used:
//
//   - A function without running evaluations may start an evaluation in a small reserve of
//     additional slots. Callers without running evaluations may do so in a second reserve, so
//     that a caller with many functions, or a function with many callers, exhausts only one.
//   - A slot that becomes free is given to the queued request whose function and caller run
//     the fewest evaluations, in order of arrival among equals. Every fourth slot is given
//     to the oldest request, so that each request is served eventually.
//   - If the queue is full, a request of a function and caller with fewer queued requests
//     replaces the newest request of the function and caller with the most queued requests.
package admission

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Limits are the bounds of a Gate.
type Limits struct {
	// Concurrent is the maximum number of concurrent evaluations, at least 1.
	Concurrent int
	// Reserve is the number of additional slots for functions without running evaluations. The same number of slots
	// is added for callers without running evaluations.
	Reserve int
	// Queue is the maximum number of queued requests. Zero or less disables the queue.
	Queue int
}

// Claim is the function and the caller of an evaluation that needs a slot.
type Claim struct {
	// Function is the function to run.
	Function string
	// Caller identifies the client. It is empty if the client is unknown.
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

// Acquire waits for a slot. Callers must call release after the evaluation; further calls of release do nothing. If
// ctx ends before a slot is free, Acquire returns an error with the fault class of ctx.Err. If the queue is full, the
// error is of class fault.Exhausted and contains a retry hint.
func (g *Gate) Acquire(ctx context.Context, claim Claim) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	slot, err := g.enterQueue(ctx, claim)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { g.leaveSlot(slot) }), nil
}

// ForEvaluations returns the limits for a number of concurrent evaluations. Each of the two reserves, for functions
// and for callers, is an eighth of that number.
func ForEvaluations(concurrent, queue int) Limits {
	return Limits{Concurrent: concurrent, Reserve: (concurrent + 7) / 8, Queue: queue}
}

// Running returns the number of running evaluations.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slots.running.total
}

// Waiting returns the number of queued requests.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.count.total
}

// enterQueue returns a slot, after waiting if necessary.
func (g *Gate) enterQueue(ctx context.Context, claim Claim) (*evaluation, error) {
	slot, r, err := g.startOrQueue(claim)
	if r == nil {
		return slot, err
	}
	select {
	case err := <-r.decided:
		return r.slot, err
	case <-ctx.Done():
		g.abandon(r)
		return nil, canceled(ctx)
	}
}

// startOrQueue takes a free slot for the claim. If no slot is free, it returns a queued request for the claim
// instead, or an error if the queue is full.
func (g *Gate) startOrQueue(claim Claim) (*evaluation, *request, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slot := g.slots.takeSlot(claim); slot != nil {
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
	return nil, g.waiting.addRequest(claim), nil
}

// retryAfter is the retry hint of rejected requests.
const retryAfter = time.Second

// rejection returns the error of a rejected request. text is a format with two verbs: the number of running
// evaluations and the number of queued requests.
func (g *Gate) rejection(text string) error {
	err := fault.New(fault.Exhausted, text, g.slots.running.total, g.waiting.count.total)
	return fault.WithRetryAfter(err, retryAfter)
}

// leaveSlot frees the slot of an evaluation, and starts queued requests.
func (g *Gate) leaveSlot(slot *evaluation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots.freeSlot(slot)
	for r := g.waiting.popNext(&g.slots); r != nil; r = g.waiting.popNext(&g.slots) {
		r.slot = g.slots.takeSlot(r.claim)
		r.decided <- nil
	}
}

// abandon removes a request from the queue. If the request got a slot at the same moment, abandon frees that slot.
func (g *Gate) abandon(r *request) {
	g.mu.Lock()
	waited := g.waiting.removeRequest(r)
	g.mu.Unlock()
	if !waited && <-r.decided == nil {
		g.leaveSlot(r.slot)
	}
}

// canceled returns the error for a caller whose ctx ended before the caller got a slot.
func canceled(ctx context.Context) error {
	return fault.New(fault.Of(ctx.Err()), "%w", context.Cause(ctx))
}
