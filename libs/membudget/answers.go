// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"context"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// answerTimeout is how long an answer may wait until others of its client have been read.
// It is short: the answer is in memory, and a client that reads needs a moment.
const answerTimeout = time.Second

// pendingAnswer is one that waits until it may be written.
type pendingAnswer struct {
	*Reservation
	admitted chan struct{} // closed when it may be written
}

// Evaluated ends the evaluation of a request, and has the reservation be that of an answer of
// size bytes alone.
func (r *Reservation) Evaluated(size int64) {
	if r == nil {
		return
	}
	r.received(r.size)
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unclaim(r)
	b.change(r.from, size-r.size)
	r.size = size
	b.admit()
}

// Answer ends the evaluation of a request with an answer of size bytes, which it may take
// its client long to read. Answer returns when the answer may be written beside others of
// the client, or an error of class fault.Exhausted if the client does not read those; then
// the answer has to be dropped.
func (r *Reservation) Answer(ctx context.Context, size int64) error {
	if r == nil {
		return nil
	}
	r.Evaluated(size)
	a := r.budget.pend(r)
	defer r.budget.endWait(a)
	timeout := time.NewTimer(answerTimeout)
	defer timeout.Stop()
	select {
	case <-a.admitted:
		return nil
	case <-timeout.C:
		return fault.WithRetryAfter(fault.New(fault.Exhausted,
			"answers to %s that are not read have the memory that one client may have: read them, "+
				"or send fewer requests at a time", r.from.peer), tryAgain)
	case <-ctx.Done():
		return fault.New(fault.Of(ctx.Err()), "the answer waited until others were read: %w", context.Cause(ctx))
	}
}

// pend admits the answer of a reservation, or has it wait.
func (b *Budget) pend(r *Reservation) *pendingAnswer {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &pendingAnswer{Reservation: r, admitted: make(chan struct{})}
	b.answers = append(b.answers, a)
	b.admit()
	return a
}

// endWait ends the wait of an answer.
func (b *Budget) endWait(a *pendingAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.answers, a); at >= 0 {
		b.answers = slices.Delete(b.answers, at, at+1)
		b.admit()
	}
}

// admitAnswers has answers written, each client's in their order. The caller holds mu.
func (b *Budget) admitAnswers() {
	waiting := make(map[string]bool) // connections and peers
	b.answers = slices.DeleteFunc(b.answers, func(a *pendingAnswer) bool {
		if waiting[a.from.conn] || waiting[a.from.peer] {
			return false
		}
		connMay, peerMay := b.mayWrite(a.from, a.size)
		waiting[a.from.conn], waiting[a.from.peer] = !connMay, !peerMay
		if !connMay || !peerMay {
			return false
		}
		b.writing.add(a.from, a.size)
		a.written = true
		close(a.admitted)
		return true
	})
}

// mayWrite reports whether an answer may be written beside those of its connection, and
// beside what else its peer takes its time with. One at a time always may. The caller
// holds mu.
func (b *Budget) mayWrite(from source, size int64) (connMay, peerMay bool) {
	conn, peer := b.writing.conns[from.conn], b.writing.peers[from.peer]
	return conn == 0 || conn+size <= b.limit/connDivisor,
		peer == 0 || b.reading.peers[from.peer]+peer+size <= b.limit/peerDivisor
}
