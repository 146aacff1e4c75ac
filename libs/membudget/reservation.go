// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"context"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Reservation is the part of the memory budget that one request has. It belongs to one
// goroutine; a nil reservation is without bounds.
type Reservation struct {
	budget  *Budget
	from    source
	size    int64
	read    bool // the request is in memory
	written bool // the answer is being written

	open     bool   // it counts as one of its connection
	function string // that it is for, once that is known
	counted  bool   // it counts as one for the function, with
	claimed  int64  // so many bytes
}

// open returns the reservation of a request that has come, which has no bytes yet.
func (b *Budget) open(from source) *Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &Reservation{budget: b, from: from}
	b.functions.open(r)
	return r
}

// acquire reserves size bytes for a request that has nothing reserved yet, as soon as they
// are within the budget. It returns an error of class fault.Exhausted if that takes too
// long, and one of ctx's class if ctx ends before.
func (r *Reservation) acquire(ctx context.Context, size int64) error {
	if size <= 0 {
		return nil
	}
	q, err := r.budget.enqueue(r.from, size)
	if err == nil && q != nil {
		err = r.budget.await(ctx, q)
	}
	if err != nil {
		return err
	}
	r.size = size
	return nil
}

// await returns when q is admitted, or an error when the timeout or ctx ends before.
func (b *Budget) await(ctx context.Context, q *queued) error {
	timeout := time.NewTimer(b.timeout)
	defer timeout.Stop()
	select {
	case <-q.admitted:
	case <-timeout.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.queue, q)
	if at < 0 {
		return nil // admitted in the meantime
	}
	b.queue = slices.Delete(b.queue, at, at+1)
	b.admit() // a request behind it may be smaller
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Of(err), "the request was queued for the server's memory: %w", context.Cause(ctx))
	}
	return b.rejection(q)
}

// rejection is the error for a request that was queued for too long. The caller holds mu.
func (b *Budget) rejection(q *queued) error {
	switch {
	case !b.mayRead(q.from, q.size):
		return fault.WithRetryAfter(fault.New(fault.Exhausted,
			"requests from %s that are not sent to their end, and answers that are not read, have the memory that "+
				"one client may have: send and read them faster, or send fewer at a time", q.from.peer), tryAgain)
	case !b.mayHold(q.from.peer, q.size):
		return fault.WithRetryAfter(fault.New(fault.Exhausted,
			"requests from %s that are being evaluated have %d bytes, and one client may have %d: "+
				"send fewer at a time, or try again later",
			q.from.peer, b.peers[q.from.peer], b.limit-b.limit/othersDivisor), tryAgain)
	default:
		return b.full()
	}
}

// grow reserves to bytes in all, unless more are reserved. It returns an error of class
// fault.Exhausted if they are not within the budget, except for the only request: it would
// be rejected for ever. A request that has a reservation never waits for a larger one: two
// of them would wait for each other.
func (r *Reservation) grow(to int64) error {
	if r == nil || to <= r.size {
		return nil
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if others := b.reserved - r.size; others > 0 && others+to > b.limit {
		return b.full()
	}
	if r.read {
		b.change(r.from, to-r.size)
	} else {
		b.reserve(r.from, to-r.size)
	}
	r.size = to
	return nil
}

// received ends the reading of a request of that many bytes: how long it stays in memory
// does not depend on its client any more. What was reserved beyond is given back.
func (r *Reservation) received(bytes int64) {
	if r.read {
		return
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	r.read = true
	b.received(r.from, r.size)
	b.change(r.from, -max(0, r.size-bytes))
	r.size = min(r.size, bytes)
	b.admit()
}

// release ends the reservation.
func (r *Reservation) release() {
	r.received(r.size)
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	if r.written {
		r.budget.writing.add(r.from, -r.size)
	}
	r.budget.unclaim(r)
	r.budget.functions.close(r)
	r.budget.change(r.from, -r.size)
	r.size = 0
	r.budget.admit()
}
