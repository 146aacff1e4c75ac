// SPDX-License-Identifier: Apache-2.0

// Package admission limits the numbers of running and queued evaluations, and shares both fairly between functions and
// callers. An evaluation needs a slot to run. While all slots are used, these rules apply:
//
//   - A function without running evaluations may use a small reserve of additional slots. A second reserve is for
//     callers without running evaluations. A caller with many functions, or a function with many callers, can thus
//     exhaust only one reserve.
//   - A free slot is given to the queued request whose function and caller run the fewest evaluations, in order of
//     arrival among equals. Every fourth slot is given to the oldest request, so that no request waits forever.
//   - If the queue is full, a request of a function and caller with fewer queued requests replaces the newest
//     request of the function and caller with the most queued requests.
package admission

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Limits are the bounds of a Gate.
type Limits struct {
	// Concurrent is the maximum number of concurrent evaluations without the reserves. Values below 1 count as 1.
	Concurrent int
	// Reserve is the number of additional slots for functions without running evaluations. Such functions can then start
	// while long evaluations use all regular slots. A second reserve of the same size is for callers without running
	// evaluations.
	Reserve int
	// Queue is the maximum number of requests that wait for a slot. If it is zero or less, a request without a free
	// slot is rejected at once.
	Queue int
}

// Claim identifies the function and the caller of an evaluation. Each of them should get a fair share of the slots.
type Claim struct {
	// Function is the function to run.
	Function string
	// Caller identifies the client, such as by its address. It is empty if the client is unknown.
	Caller string
}

// Gate limits the number of concurrent evaluations and queues further evaluations. It is safe for concurrent use.
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

// Acquire waits until an evaluation may start. The returned function release frees the evaluation's slot. Callers must
// call release after the evaluation. Further calls have no effect. If ctx ends during the wait, the error has the class
// of ctx.Err (see package fault). If the queue is full, the error has the class fault.Exhausted, and contains the time
// after which the client should retry.
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

// ForEvaluations returns limits for the given maximum numbers of running and queued evaluations. It adds two reserves
// of slots, for functions and for callers without running evaluations. The size of each reserve is an eighth of
// concurrent.
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

// enterQueue waits in the queue until a slot is free. It returns an error if ctx ends or the request is rejected.
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

// startOrQueue returns a free slot, or a new request in the queue if no slot is free. If the queue is full, the new
// request displaces a queued request or is rejected with an error.
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

// retryAfter is the time after which clients should retry a request that was rejected because of a full queue.
const retryAfter = time.Second

// rejection returns the error for a request that is rejected because the queue is full. The argument text is a format
// string with two verbs %d: first the number of running evaluations, then the number of queued requests.
func (g *Gate) rejection(text string) error {
	err := fault.New(fault.Exhausted, text, g.slots.running.total, g.waiting.count.total)
	return fault.WithRetryAfter(err, retryAfter)
}

// leaveSlot frees the slot of an evaluation that has ended, and gives free slots to queued requests.
func (g *Gate) leaveSlot(slot *evaluation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots.freeSlot(slot)
	for r := g.waiting.popNext(&g.slots); r != nil; r = g.waiting.popNext(&g.slots) {
		r.slot = g.slots.takeSlot(r.claim)
		r.decided <- nil
	}
}

// abandon removes a request from the queue, because its caller no longer waits. If the request got a slot at the same
// time, abandon frees the slot.
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
