// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"context"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// answerTimeout is the maximum time that an answer waits for memory. It is short, because the waiting answer itself
	// uses memory.
	answerTimeout = 5 * time.Second
	// stuckTimeout is the minimum time that a request waits for its function's share of the memory before it may be
	// rejected. We reject it only if no evaluation of the function has ended during this time. In addition, another
	// request of the same client address must be waiting for memory.
	stuckTimeout = time.Minute
)

// Reservation is the part of the memory budget that a request uses. Only one goroutine may use it. The methods of a
// nil *Reservation return immediately.
type Reservation struct {
	budget   *Budget
	from     source
	size     int64
	function string // function whose share the reservation uses; empty before Claim
	used     int64  // bytes of the function's share
}

// acquire waits until size bytes are reserved for a request. After the timeout, it returns an error of class
// fault.Exhausted. If ctx is done, its error has the class of ctx's error.
func (r *Reservation) acquire(ctx context.Context, size int64) error {
	w := &waiter{Reservation: r, stage: unread, bytes: size}
	return r.awaitAdmission(ctx, w, timeout, "the request waited for the server's memory", func() error {
		b := r.budget
		if used := b.peers[r.from.peer]; used > 0 && used+size > b.addressShare() {
			return errExhausted("requests from %s use %d bytes, and one client may use %d: send fewer at once, read the "+
				"answers, or try again later", r.from.peer, used, b.addressShare())
		}
		return b.errFull()
	})
}

// Claim waits until the function's share of the memory budget has room for this request. A second call replaces the
// function. Claim returns an error of class fault.Exhausted if no evaluation of the function ends while other requests
// of the client address need memory. If ctx is done, the error has the class of ctx's error.
func (r *Reservation) Claim(ctx context.Context, function string) error {
	if r == nil {
		return nil
	}
	r.budget.changeReservations(func() { r.budget.endUse(r) })
	w := &waiter{Reservation: r, stage: received, bytes: r.size, function: function}
	return r.awaitAdmission(ctx, w, stuckTimeout, "the request waited for other requests of its function", func() error {
		b := r.budget
		u := b.functions[function]
		needed := slices.ContainsFunc(b.queue, func(o *waiter) bool {
			return o.stage == unread && o.from.peer == r.from.peer
		})
		if u == nil || !needed || time.Since(u.ended) < stuckTimeout {
			return nil
		}
		return errExhausted("no evaluation of %s has ended for %v, and other requests wait for the memory of its requests, "+
			"which may use %d bytes: send fewer at once, try again later, or raise %s",
			function, stuckTimeout, b.functionShare(), b.setting)
	})
}

// Answer ends the evaluation of a request, and waits until there is memory for its answer of size bytes. An answer that
// is not larger than its request does not wait. If the client does not read earlier answers, the wait may exceed its
// time limit. Answer then returns an error of class fault.Exhausted, and the caller must discard the answer.
func (r *Reservation) Answer(ctx context.Context, size int64) error {
	if r == nil {
		return nil
	}
	r.budget.changeReservations(func() { r.budget.endUse(r) })
	w := &waiter{Reservation: r, stage: answered, bytes: size}
	return r.awaitAdmission(ctx, w, answerTimeout, "the response waited for other responses to be read", func() error {
		return errExhausted("answers to %s that are not read, and its requests, use the memory that one client may use: "+
			"read the answers, or send fewer requests at a time", r.from.peer)
	})
}

// Fail ends the evaluation of a request without an answer, and releases the reservation.
func (r *Reservation) Fail() {
	if r != nil {
		r.release()
	}
}

// shrink reduces the reservation to the given number of bytes, and frees the rest for other requests.
func (r *Reservation) shrink(to int64) {
	r.budget.changeReservations(func() { r.budget.resizeReservation(r, min(r.size, to)) })
}

// release releases all bytes of the reservation. Further calls of release do nothing.
func (r *Reservation) release() {
	r.budget.changeReservations(func() {
		r.budget.endUse(r)
		r.budget.resizeReservation(r, 0)
	})
}

// awaitAdmission waits until the budget has memory for the waiter w. After each interval, it locks the budget and calls
// the callback reject. If reject returns an error, the wait ends with this error. If ctx is done, the returned error
// begins with text.
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
