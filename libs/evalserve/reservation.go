// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"context"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// answerTimeout limits how long an answer waits. It is short, because the answer uses memory while it waits.
	answerTimeout = 5 * time.Second
	// stuckTimeout is the time without an ended evaluation after which requests that wait for their function's share are
	// rejected in favor of other requests of their address.
	stuckTimeout = time.Minute
)

// Reservation is the part of the memory budget that a request uses. Only one goroutine may use it. A nil *Reservation
// has no limits.
type Reservation struct {
	budget   *Budget
	from     source
	size     int64
	function string // function whose share the reservation uses; empty before Claim
	used     int64  // bytes of that share
}

// acquire returns when size bytes are reserved for a request. The error is of class fault.Exhausted after the timeout,
// and of ctx's class if ctx ends.
func (r *Reservation) acquire(ctx context.Context, size int64) error {
	w := &waiter{Reservation: r, stage: unread, bytes: size}
	return r.awaitAdmission(ctx, w, timeout, "the request waited for the server's memory", func() error {
		b := r.budget
		if used := b.peers[r.from.peer]; used > 0 && used+size > b.addressShare() {
			return errExhausted("requests from %s use %d bytes, and one client may use %d: send fewer at a time, read the "+
				"answers, or try again later", r.from.peer, used, b.addressShare())
		}
		return b.errFull()
	})
}

// Claim returns when a function may evaluate the request. A second call replaces the function. The request waits while
// the function's evaluations use its share of the memory budget. The error is of class fault.Exhausted if no evaluation
// of the function ends and other requests of the address need memory, and of ctx's class if ctx ends.
func (r *Reservation) Claim(ctx context.Context, function string) error {
	if r == nil {
		return nil
	}
	r.budget.changeReservations(func() { r.budget.endUse(r) })
	w := &waiter{Reservation: r, stage: received, bytes: r.size, function: function}
	return r.awaitAdmission(ctx, w, stuckTimeout, "the request waited for others of its function", func() error {
		b := r.budget
		u := b.functions[function]
		needed := slices.ContainsFunc(b.queue, func(o *waiter) bool {
			return o.stage == unread && o.from.peer == r.from.peer
		})
		if u == nil || !needed || time.Since(u.ended) < stuckTimeout {
			return nil
		}
		return errExhausted("no evaluation of %s has ended for %v, and others wait for the memory of requests for it, which "+
			"may use %d bytes: send fewer at a time, try again later, or raise %s",
			function, stuckTimeout, b.functionShare(), b.setting)
	})
}

// Answer ends the evaluation of a request, and returns when its answer of size bytes may be written. Answers that are
// larger than their requests wait for memory. The error is of class fault.Exhausted if the client does not read its
// other answers. Callers must then drop the answer.
func (r *Reservation) Answer(ctx context.Context, size int64) error {
	if r == nil {
		return nil
	}
	r.budget.changeReservations(func() { r.budget.endUse(r) })
	w := &waiter{Reservation: r, stage: answered, bytes: size}
	return r.awaitAdmission(ctx, w, answerTimeout, "the answer waited for others to be read", func() error {
		return errExhausted("answers to %s that are not read, and its requests, use the memory that one client may use: "+
			"read the answers, or send fewer requests at a time", r.from.peer)
	})
}

// Fail ends the evaluation of a request without an answer.
func (r *Reservation) Fail() {
	if r != nil {
		r.release()
	}
}

// shrink releases the bytes that a request does not need.
func (r *Reservation) shrink(to int64) {
	r.budget.changeReservations(func() { r.budget.resizeReservation(r, min(r.size, to)) })
}

// release ends the reservation. Further calls do nothing.
func (r *Reservation) release() {
	r.budget.changeReservations(func() {
		r.budget.endUse(r)
		r.budget.resizeReservation(r, 0)
	})
}

// awaitAdmission returns when w is admitted. After each interval it calls reject, which holds the budget's lock, and
// returns its error unless it is nil. Text begins the error for a context that ends.
func (r *Reservation) awaitAdmission(
	ctx context.Context, w *waiter, interval time.Duration, text string, reject func() error,
) error {
	if err := r.budget.enqueue(w); err != nil {
		return err
	}
	select {
	case <-w.admitted:
		return nil
	default:
	}
	timer := time.NewTicker(interval)
	defer timer.Stop()
	for {
		select {
		case <-w.admitted:
			return nil
		case <-timer.C:
			if err := r.budget.leaveQueue(w, reject); err != nil {
				return err
			}
		case <-ctx.Done():
			return r.budget.leaveQueue(w, func() error {
				return fault.New(fault.Of(ctx.Err()), "%s: %w", text, context.Cause(ctx))
			})
		}
	}
}
