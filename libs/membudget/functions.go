// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

const (
	// functionDivisor is for functions what othersDivisor is for peers: of the bytes that one
	// peer may have, and of the streams of one connection, a function leaves a fourth to others.
	functionDivisor = 4
	// functionStreams is how many requests of one connection one function may have evaluated.
	functionStreams = serve.DefaultMaxStreams - serve.DefaultMaxStreams/functionDivisor
	// busyStreams is how many requests of one connection make its client wait for streams: health
	// checks have some too.
	busyStreams = serve.DefaultMaxStreams - serve.DefaultMaxStreams/16
	// streamTimeout is how long an excess request may have a stream while its client waits for one.
	// In that time a crowd that is served is served, and loses no request.
	streamTimeout = time.Second
	// maxExcess bounds the excess requests.
	maxExcess = 1000
)

// excess is a request for a function that has its part already. Which function a request is for is
// known when it has been read, and by then it has memory and a stream. It waits until others
// for its function have ended, and is rejected when a request that may be for another function needs
// what it has.
type excess struct {
	*Reservation
	decided chan error // of size one: nil when the request may be evaluated
}

// claim is a function that requests of a connection are for.
type claim struct{ conn, function string }

func (r *Reservation) claim() claim { return claim{r.from.conn, r.function} }

// Claim returns when the request may be evaluated by a function; a second call names another function
// instead. If the function has its part of the memory budget, or of the streams of the connection, the
// request waits. The error is of class fault.Exhausted if others need what the request has, and of ctx's
// class if ctx ends before.
func (r *Reservation) Claim(ctx context.Context, function string) error {
	if r == nil {
		return nil
	}
	r.received(r.size)
	x := r.budget.claim(r, function)
	if x == nil {
		return nil
	}
	look := time.NewTicker(streamTimeout)
	defer look.Stop()
	for {
		select {
		case err := <-x.decided:
			return err
		case <-look.C:
			r.budget.leaveStream(x)
		case <-ctx.Done():
			r.budget.abandon(x)
			return fault.New(fault.Of(ctx.Err()), "the request waited for others of its function: %w", context.Cause(ctx))
		}
	}
}

// Excess returns how many requests wait for others of their function.
func (b *Budget) Excess() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.functions.excess)
}

// claim counts a request for a function. It returns nil if the function may have it evaluated now.
func (b *Budget) claim(r *Reservation, function string) *excess {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unclaim(r)
	r.function = function
	x := &excess{Reservation: r, decided: make(chan error, 1)}
	b.functions.wait(x)
	b.admitExcess()
	if r.counted {
		return nil
	}
	if len(b.functions.excess) > maxExcess {
		b.reject(x, b.tooManyBytes(x))
	}
	b.admit() // queued requests may need what it has
	return x
}

// unclaim ends what a request counts for its function. The caller holds mu.
func (b *Budget) unclaim(r *Reservation) {
	if r.counted {
		b.functions.uncount(r)
		b.admitExcess()
	}
}

// admitExcess has requests evaluated whose functions may have more, each function's in their order.
// The caller holds mu.
func (b *Budget) admitExcess() {
	full := make(map[claim]bool)
	for _, x := range b.functions.waiting() {
		here, everywhere := x.claim(), claim{function: x.function}
		if full[here] || full[everywhere] {
			continue
		}
		bytes := b.functions.bytes[x.function]
		full[everywhere] = bytes > 0 && bytes+x.size > b.functionBytes()
		full[here] = b.functions.streams[here] >= functionStreams
		if full[here] || full[everywhere] {
			continue
		}
		b.functions.endWait(x)
		b.functions.count(x.Reservation)
		x.decided <- nil
	}
}

// functionBytes is how many bytes the evaluations of one function may have.
func (b *Budget) functionBytes() int64 {
	peer := b.limit - b.limit/othersDivisor
	return peer - peer/functionDivisor
}

// abandon ends the wait of a request whose caller has left.
func (b *Budget) abandon(x *excess) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.functions.endWait(x) {
		b.admitExcess()
	}
}

// leaveStream rejects x if its client waits for streams.
func (b *Budget) leaveStream(x *excess) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.functions.requests[x.from.conn] < busyStreams {
		return
	}
	b.reject(x, fault.WithRetryAfter(fault.New(fault.Exhausted,
		"%d requests for %s are being evaluated on one connection, which has %d streams for all functions: "+
			"send fewer at a time, use more connections, or try again later",
		b.functions.streams[x.claim()], x.function, serve.DefaultMaxStreams), tryAgain))
	b.admit()
}

// tooManyBytes is the error for an excess request whose memory others need. The caller holds mu.
func (b *Budget) tooManyBytes(x *excess) error {
	return fault.WithRetryAfter(fault.New(fault.Exhausted,
		"requests for %s that are being evaluated have %d bytes, and others wait for memory, of which one "+
			"function may have %d bytes: send fewer at a time, try again later, or raise %s",
		x.function, b.functions.bytes[x.function], b.functionBytes(), b.setting), tryAgain)
}

// displace rejects the newest excess requests until q can be admitted, and reports whether it can: if
// that were not enough, it rejects none. The caller holds mu.
func (b *Budget) displace(q *queued) bool {
	f := &b.functions
	if !b.mayRead(q.from, q.size) || !b.mayHold(q.from.peer, q.size-f.held[q.from.peer]) || !b.fits(q.size-f.held[all]) {
		return false
	}
	for _, x := range f.newest() {
		held := b.mayHold(q.from.peer, q.size)
		if held && b.fits(q.size) {
			break
		}
		if held || x.from.peer == q.from.peer {
			b.reject(x, b.tooManyBytes(x))
		}
	}
	return true
}

// reject ends the wait of x with an error. What x has counts as free from now on, since nothing is left
// to do for it but to return the error. The caller holds mu.
func (b *Budget) reject(x *excess, err error) {
	if !b.functions.endWait(x) {
		return
	}
	b.change(x.from, -x.size)
	x.size = 0
	b.functions.close(x.Reservation)
	x.decided <- err
}
