// SPDX-License-Identifier: Apache-2.0

// Package membudget bounds the bytes that a server of evaluations has in memory, and shares them
// between its clients, by their addresses, and between functions.
package membudget

import (
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// tryAgain is the retry hint for callers that were rejected: requests come and go.
const tryAgain = time.Second

// Budget bounds the bytes in memory at a time: of requests, from the first byte that
// is read until the response is written, and of outputs. Other queues bound the number
// of evaluations; memory only runs out by their size.
//
// A request that does not fit is queued, unread, for at most timeout. Its size is reserved
// whole before it is read, so requests that hold a part never wait for each other. One that
// is larger than the budget is admitted when nothing else is reserved.
//
// Requests are admitted in the order of the queue, except that a request that can be
// admitted overtakes requests that cannot. The bytes that may overtake one request are
// bounded: by the whole budget while it does not fit, and by a fourth of that while requests
// from the same peer are being read. So a large request neither holds up small ones nor
// waits for ever.
type Budget struct {
	limit   int64
	timeout time.Duration
	setting string // of limit
	windows serve.Windows

	mu        sync.Mutex
	reserved  int64
	peers     tally // reserved, by peer
	reading   usage // reserved by requests that are being read
	writing   usage // reserved by answers that are being written
	functions claims
	queue     []*queued
	answers   []*pendingAnswer
}

// Fractions of the budget. A client decides how long it takes to send a request and to read the
// answer, so these leave most of the budget to others. It also chooses functions that take
// long, but so does a client that does nothing wrong: requests that are being evaluated leave
// a fourth.
const (
	connDivisor   = 4 // a connection's requests that are being read, and its answers, have a fourth each
	peerDivisor   = 2 // and both, of all connections from one address, a half
	othersDivisor = 4 // of all that one address has, evaluations included, a fourth is left to others

	// maxQueued bounds the length of the queue.
	maxQueued = 1000
)

// source is where a request comes from.
type source struct {
	conn, peer string // addresses, with and without port
}

// queued is a request that waits for its reservation.
type queued struct {
	size      int64
	from      source
	overtaken int64         // bytes that were admitted before it although they came later
	admitted  chan struct{} // closed when the size is reserved
}

// New returns a budget of so many bytes. timeout is how long a request may be queued, and setting the
// name of the setting of limit.
func New(limit int64, timeout time.Duration, setting string) *Budget {
	return NewBehind(serve.DefaultWindows, limit, timeout, setting)
}

// NewBehind returns the budget of an endpoint that has receive windows of its own.
func NewBehind(windows serve.Windows, limit int64, timeout time.Duration, setting string) *Budget {
	return &Budget{limit: limit, timeout: timeout, setting: setting, windows: windows}
}

// Default returns how many bytes are right for a server in the container whose control group is
// at root, with messages of up to maxMessage bytes: an eighth of its memory limit. Without a
// limit it is as for a container of a gigabyte, and some of the largest messages fit.
func Default(root string, maxMessage int) int64 {
	if limit, ok := cgroup.MemoryLimit(root); ok {
		return limit / 8
	}
	return max(128<<20, 4*int64(maxMessage))
}

// Reserved returns how many bytes are reserved.
func (b *Budget) Reserved() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserved
}

// Queued returns how many requests and answers wait for the budget.
func (b *Budget) Queued() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.queue) + len(b.answers))
}

// enqueue reserves size bytes for a request, or queues it: the queued request is nil if the
// reservation is made. Requests in the queue are bounded too: they have no reservation, but
// receive buffers hold parts of them.
func (b *Budget) enqueue(from source, size int64) (*queued, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := &queued{size: size, from: from, admitted: make(chan struct{})}
	b.queue = append(b.queue, q)
	b.admit()
	last := len(b.queue) - 1
	if last < 0 || b.queue[last] != q {
		return nil, nil
	}
	if err := b.overfull(q); err != nil {
		b.queue = b.queue[:last]
		return nil, err
	}
	return q, nil
}

// overfull returns the error for q, the last of the queue, if the queue is too long with it.
// The caller holds mu.
func (b *Budget) overfull(q *queued) error {
	others := b.queue[:len(b.queue)-1]
	var all, peer, unread int64
	window := int64(b.windows.Request)
	for _, o := range others {
		all += o.size
		if o.from.peer == q.from.peer {
			peer += o.size
		}
		if o.from.conn == q.from.conn {
			unread += min(o.size, window)
		}
	}
	switch {
	case len(others) >= maxQueued, len(others) > 0 && all+q.size > b.limit:
		return b.full()
	case peer > 0 && peer+q.size > b.limit/peerDivisor, unread > 0 && unread+min(q.size, window) > b.maxUnread():
		return fault.WithRetryAfter(fault.New(fault.Exhausted,
			"too many requests from %s wait for the server's memory: send fewer at a time, or try again later",
			q.from.peer), tryAgain)
	}
	return nil
}

// maxUnread bounds what the queued requests of one connection may have in the server's receive
// buffers: they share the connection's window with the requests being read.
func (b *Budget) maxUnread() int64 { return int64(b.windows.Connection) * 3 / 4 }

// admit has answers written, and makes the reservations of queued requests that can be
// admitted. The caller holds mu.
func (b *Budget) admit() {
	b.admitAnswers()
	var passed overtaking
	kept := b.queue[:0]
	for _, q := range b.queue {
		readable := b.mayRead(q.from, q.size) && b.mayHold(q.from.peer, q.size)
		switch {
		case passed.closed(q.from.peer):
			kept = append(kept, q)
		case (!readable || !b.fits(q.size)) && !b.displace(q):
			kept = append(kept, q)
			passed.wait(q, readable, b.limit)
		default:
			passed.admit(q)
			b.reserve(q.from, q.size)
			close(q.admitted)
		}
	}
	clear(b.queue[len(kept):])
	b.queue = kept
}

// fits reports whether size more bytes are within the budget. The caller holds mu.
func (b *Budget) fits(size int64) bool { return b.reserved == 0 || b.reserved+size <= b.limit }

// mayRead reports whether a request may be read beside the requests being read from its
// connection, and beside the requests being read from its peer and the responses being
// written to it. One at a time always may. The caller holds mu.
func (b *Budget) mayRead(from source, size int64) bool {
	conn := b.reading.conns[from.conn]
	peer := b.reading.peers[from.peer] + b.writing.peers[from.peer]
	return (conn == 0 || conn+size <= b.limit/connDivisor) && (peer == 0 || peer+size <= b.limit/peerDivisor)
}

// mayHold reports whether a request may be read and evaluated beside all others of its peer.
// One at a time always may. The caller holds mu.
func (b *Budget) mayHold(peer string, size int64) bool {
	held := b.peers[peer]
	return held == 0 || held+size <= b.limit-b.limit/othersDivisor
}

// reserve reserves bytes for a request that is about to be read. The caller holds mu.
func (b *Budget) reserve(from source, size int64) {
	b.change(from, size)
	b.reading.add(from, size)
}

// change changes how many bytes are reserved for a peer. The caller holds mu.
func (b *Budget) change(from source, by int64) {
	b.reserved += by
	b.peers.add(from.peer, by)
}

// received ends the reading of size bytes. The caller holds mu.
func (b *Budget) received(from source, size int64) {
	b.reading.add(from, -size)
}

// full is the error for a request that does not fit. The caller holds mu.
func (b *Budget) full() error {
	return fault.WithRetryAfter(fault.New(fault.Exhausted,
		"requests of %d bytes are being read, queued or evaluated, and the server's memory budget is %d: "+
			"try again later, run more replicas, or give them more memory",
		b.reserved, b.limit), tryAgain)
}
