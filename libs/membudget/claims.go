// SPDX-License-Identifier: Apache-2.0

package membudget

import "slices"

// all is the address of all peers in a tally.
const all = ""

// claims count the requests for functions, from when the function is known to the end of the evaluation,
// and the excess requests.
type claims struct {
	requests map[string]int // not answered yet, by connection
	streams  map[claim]int  // of requests that may be evaluated
	bytes    tally          // of requests that may be evaluated, by function
	excess   []*excess      // by arrival
	held     tally          // bytes of excess requests, by peer
}

// open counts a request of a connection until it is answered.
func (c *claims) open(r *Reservation) {
	if c.requests == nil {
		c.requests = make(map[string]int)
	}
	c.requests[r.from.conn]++
	r.open = true
}

// close ends that.
func (c *claims) close(r *Reservation) {
	if !r.open {
		return
	}
	r.open = false
	if c.requests[r.from.conn]--; c.requests[r.from.conn] == 0 {
		delete(c.requests, r.from.conn)
	}
}

// count counts a request for its function.
func (c *claims) count(r *Reservation) {
	if c.streams == nil {
		c.streams = make(map[claim]int)
	}
	r.counted, r.claimed = true, r.size
	c.streams[r.claim()]++
	c.bytes.add(r.function, r.claimed)
}

// uncount ends that.
func (c *claims) uncount(r *Reservation) {
	r.counted = false
	c.bytes.add(r.function, -r.claimed)
	of := r.claim()
	if c.streams[of]--; c.streams[of] == 0 {
		delete(c.streams, of)
	}
}

// wait adds an excess request.
func (c *claims) wait(x *excess) {
	c.excess = append(c.excess, x)
	c.held.add(x.from.peer, x.size)
	c.held.add(all, x.size)
}

// endWait removes an excess request, and reports whether it was there.
func (c *claims) endWait(x *excess) bool {
	at := slices.Index(c.excess, x)
	if at < 0 {
		return false
	}
	c.excess = slices.Delete(c.excess, at, at+1)
	c.held.add(x.from.peer, -x.size)
	c.held.add(all, -x.size)
	return true
}

// waiting returns the excess requests, the oldest first, which may be removed meanwhile.
func (c *claims) waiting() []*excess { return slices.Clone(c.excess) }

// newest returns them with the newest first.
func (c *claims) newest() []*excess {
	newest := c.waiting()
	slices.Reverse(newest)
	return newest
}
