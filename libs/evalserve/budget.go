// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"slices"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

const (
	// retryAfter is the delay before a retry that we suggest to callers whose request was rejected because the memory
	// budget was used up.
	retryAfter = time.Second
	// timeout is the maximum time that a request waits in the queue for memory. It is long, because callers that do not
	// retry prefer a long wait to a rejection.
	timeout = 5 * time.Minute
	// maxQueued is the maximum number of requests and answers that wait for memory. At most half of them may belong to the
	// same client address.
	maxQueued = 1000

	// shareDivisor limits each client address to three quarters of the memory budget. It also limits each function to
	// three quarters of an address's share.
	shareDivisor = 4
	// answerDivisor reserves memory for answers that are larger than their requests: an eighth of the budget, in addition
	// to the budget. Without this reserve, finished results would be lost. Each client address may use the whole reserve
	// in addition to its share.
	answerDivisor = 8
	// unreadDivisor limits the receive buffers of waiting requests. The buffers use memory outside of the budget, up to
	// half the size of the budget. Each client address may use half of this limit.
	unreadDivisor = 2
)

// Budget limits the memory of a server's requests and answers. A limit on the number of requests is not enough,
// because a few large requests can use up the memory. A client address and a function may each use only a share of the
// budget.
//
// We reserve the whole size of a request before we read it, so that partly read requests never wait for each other. A
// request waits in a queue until the budget and the shares of its address and its function have enough free memory. An
// answer that is larger than its request waits there too. A request that exceeds the budget or its address's share
// waits until the budget or the share is unused.
//
// Requests from the same address are admitted in order. A request of an address without a free share does not delay
// requests of other addresses.
type Budget struct {
	limit   int64
	windows serve.Windows
	setting string // name of the setting for limit; may be empty

	mu        sync.Mutex
	reserved  int64
	peers     map[string]int64 // bytes reserved by address
	functions map[string]*usage
	queue     []*waiter
}

// usage is the memory that the running evaluations of a function use.
type usage struct {
	bytes int64
	ended time.Time // end of the last evaluation; before that, start of the first evaluation
}

// NewBudget returns a budget of limit bytes, for a server with the given HTTP/2 flow-control windows. Setting is the
// name of the user's setting for the limit, which errors mention. Setting may be empty.
func NewBudget(limit int64, windows serve.Windows, setting string) *Budget {
	return &Budget{
		limit: limit, windows: windows, setting: setting,
		peers: make(map[string]int64), functions: make(map[string]*usage),
	}
}

// DefaultBytes returns the default memory budget of a server. It is an eighth of the memory limit of the container
// whose control group is at root. If the container has no limit, the default is 128 MiB or four times maxMessage,
// whichever is larger. The maximum message size maxMessage is in bytes.
func DefaultBytes(root string, maxMessage int) int64 {
	if limit, ok := cgroup.MemoryLimit(root); ok {
		return limit / 8
	}
	return max(128<<20, 4*int64(maxMessage))
}

// Reserved returns the number of bytes that requests and answers have reserved.
func (b *Budget) Reserved() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserved
}

// Queued returns the number of requests and answers that wait for memory.
func (b *Budget) Queued() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.queue))
}

// addressShare returns the maximum number of bytes for requests and answers of a client address. functionShare
// returns the maximum number of bytes for running evaluations of a function.
func (b *Budget) addressShare() int64  { return b.limit - b.limit/shareDivisor }
func (b *Budget) functionShare() int64 { return b.addressShare() - b.addressShare()/shareDivisor }

// source is the client from which a request was received.
type source struct {
	conn, peer string // client's address with its port, and without the port
}

// stage is a point in an evaluation at which a request or an answer waits for memory.
type stage int

const (
	unread   stage = iota // a request waits to be read
	received              // a request waits for its function's share
	answered              // an answer waits to be written
)

// waiter is a request or an answer that waits for free memory in the budget or in its function's share.
type waiter struct {
	*Reservation
	stage    stage
	bytes    int64         // size of the reservation after admission
	function string        // function whose share lacks memory; only in stage received
	admitted chan struct{} // closed when the waiter is admitted
}

// orderKey returns the key that determines the order of admission. Requests with the same key are admitted in their
// order of arrival.
func (w *waiter) orderKey() string {
	if w.stage == received {
		return "function " + w.function
	}
	return "address " + w.from.peer
}

// enqueue admits a waiter immediately if the budget has memory for it, and otherwise appends it to the queue. It
// returns an error if the queue is full.
func (b *Budget) enqueue(w *waiter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.admitted = make(chan struct{})
	b.queue = append(b.queue, w)
	b.admitFitting()
	if at := slices.Index(b.queue, w); at >= 0 {
		if err := b.checkQueue(w); err != nil {
			b.queue = slices.Delete(b.queue, at, at+1)
			return err
		}
	}
	return nil
}

// checkQueue returns an error if the waiter w, which was just appended, makes the queue too large. The caller holds mu.
func (b *Budget) checkQueue(w *waiter) error {
	window := int64(b.windows.Request)
	countPeer := 0
	var all, peer, conn int64 // bytes in receive buffers
	for _, o := range b.queue {
		if o.from.peer == w.from.peer {
			countPeer++
		}
		if o.stage != unread {
			continue
		}
		buffered := min(o.bytes, window)
		all += buffered
		if o.from.peer == w.from.peer {
			peer += buffered
		}
		if o.from.conn == w.from.conn {
			conn += buffered
		}
	}
	first := all == min(w.bytes, window) // an only unread request may always wait
	switch {
	case w.stage == answered:
		return nil
	case len(b.queue) > maxQueued, w.stage == unread && !first && all > b.limit/unreadDivisor:
		return b.errFull()
	case countPeer > maxQueued/2, w.stage == unread && !first && (peer > b.limit/unreadDivisor/2 || conn > b.maxUnread()):
		return errExhausted("too many requests from %s wait for the server's memory: send fewer at once, use more "+
			"connections, or try again later", w.from.peer)
	}
	return nil
}

// maxUnread returns the maximum size of receive buffers for a connection's queued requests, in bytes. The rest of the
// connection's HTTP/2 window is reserved for requests that are being read.
func (b *Budget) maxUnread() int64 { return int64(b.windows.Connection) * 3 / 4 }

// leaveQueue removes the waiter w from the queue if the given function returns an error. It returns this error. If w
// has already left the queue, leaveQueue returns nil without calling the function.
func (b *Budget) leaveQueue(w *waiter, reason func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.queue, w)
	if at < 0 {
		return nil
	}
	err := reason()
	if err != nil {
		b.queue = slices.Delete(b.queue, at, at+1)
		b.admitFitting() // requests behind w may be smaller and fit
	}
	return err
}

// changeReservations calls the given function, which may release memory. It then admits the waiters that fit into the
// budget.
func (b *Budget) changeReservations(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	b.admitFitting()
}

// admitFitting admits the waiters that fit into the memory budget, in the order of the queue. The caller holds mu.
func (b *Budget) admitFitting() {
	blocked := make(map[string]bool)
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		if blocked[w.orderKey()] && w.stage != answered {
			return false
		}
		if !b.fits(w) {
			blocked[w.orderKey()] = blocked[w.orderKey()] || w.stage != answered
			return false
		}
		b.resizeReservation(w.Reservation, w.bytes)
		if w.stage == received {
			b.beginUse(w.Reservation, w.function)
		}
		close(w.admitted)
		return true
	})
}

// fits reports whether the budget has memory for the waiting request or answer w. The caller holds mu.
func (b *Budget) fits(w *waiter) bool {
	if w.stage == received {
		u := b.functions[w.function]
		return u == nil || u.bytes == 0 || u.bytes+w.bytes <= b.functionShare()
	}
	limit, share := b.limit, b.addressShare()
	if w.stage == answered {
		limit, share = limit+b.limit/answerDivisor, share+b.limit/answerDivisor
	}
	others, peer := b.reserved-w.size, b.peers[w.from.peer]-w.size
	return w.bytes <= w.size || ((others == 0 || others+w.bytes <= limit) && (peer == 0 || peer+w.bytes <= share))
}

// resizeReservation changes the number of bytes that r reserves in the budget. The caller holds mu.
func (b *Budget) resizeReservation(r *Reservation, bytes int64) {
	b.reserved += bytes - r.size
	if b.peers[r.from.peer] += bytes - r.size; b.peers[r.from.peer] == 0 {
		delete(b.peers, r.from.peer)
	}
	r.size = bytes
}

// beginUse counts the memory reserved by r as used by the function. The method endUse reverts this. The caller holds
// mu.
func (b *Budget) beginUse(r *Reservation, function string) {
	u := b.functions[function]
	if u == nil {
		u = &usage{ended: time.Now()}
		b.functions[function] = u
	}
	u.bytes += r.size
	r.function = function
	r.used = r.size
}

func (b *Budget) endUse(r *Reservation) {
	u := b.functions[r.function]
	if u == nil {
		return
	}
	u.ended = time.Now()
	if u.bytes -= r.used; u.bytes == 0 {
		delete(b.functions, r.function)
	}
	r.function, r.used = "", 0
}

// errFull returns the error for a request that does not fit into the memory budget. The caller holds mu.
func (b *Budget) errFull() error {
	return errExhausted("requests of %d bytes are being read, queued or evaluated, and the server's memory budget is %d: "+
		"try again later, or raise the server's memory limit", b.reserved, b.limit)
}

// errExhausted returns the error for a request that is rejected because memory is short. The error has the class
// fault.Exhausted and a retry hint.
func errExhausted(format string, args ...any) error {
	return fault.WithRetryAfter(fault.New(fault.Exhausted, format, args...), retryAfter)
}
