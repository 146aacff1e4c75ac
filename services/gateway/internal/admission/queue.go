// SPDX-License-Identifier: Apache-2.0

package admission

import "slices"

// oldestEvery is how often a free slot goes to the request that has waited longest of the
// requests that may start, whatever its function and caller run: every fourth time. Fairness
// by shares alone would let a request wait for as long as others with smaller shares keep
// coming.
const oldestEvery = 4

// request is one that waits.
type request struct {
	claim   Claim
	arrival int
	slot    *evaluation // set before decided gets nil
	decided chan error  // of size one: nil for a slot, or why there will be none
}

// queue has the requests that wait, by claim and within a claim by arrival. There are
// few claims, so looking at the first request of each is fast.
type queue struct {
	count    tally
	claims   map[Claim][]*request
	arrivals int // requests so far
	turn     int // slots that others were given since the oldest request had one
}

func newQueue() queue { return queue{count: newTally(), claims: map[Claim][]*request{}} }

// add appends a request.
func (q *queue) add(claim Claim) *request {
	q.arrivals++
	r := &request{claim: claim, arrival: q.arrivals, decided: make(chan error, 1)}
	q.claims[claim] = append(q.claims[claim], r)
	q.count.add(claim, 1)
	return r
}

// remove takes a request out, and reports whether it was there.
func (q *queue) remove(r *request) bool {
	requests := q.claims[r.claim]
	i := slices.Index(requests, r)
	if i < 0 {
		return false
	}
	q.count.add(r.claim, -1)
	q.claims[r.claim] = slices.Delete(requests, i, i+1)
	if len(requests) == 1 {
		delete(q.claims, r.claim)
	}
	return true
}

// next takes out the request to start now; nil if none may start. In a reserve the oldest
// that may start is not always the oldest of all: the turn of that one then lasts until it
// has a slot.
func (q *queue) next(s *slots) *request {
	next := q.first(s, q.turn < oldestEvery-1)
	if next == nil {
		return nil
	}
	if q.turn++; next == q.oldest() {
		q.turn = 0
	}
	q.remove(next)
	return next
}

// oldest returns the request that has waited longest.
func (q *queue) oldest() *request {
	var oldest *request
	for _, requests := range q.claims {
		if r := requests[0]; oldest == nil || r.arrival < oldest.arrival {
			oldest = r
		}
	}
	return oldest
}

// first returns the oldest request that may start now; by shares, the oldest of those
// whose function and caller run the fewest evaluations.
func (q *queue) first(s *slots, byShares bool) *request {
	var first *request
	least := 0
	for claim, requests := range q.claims {
		r, share := requests[0], 0
		if byShares {
			share = s.running.share(claim)
		}
		if s.fits(claim) && (first == nil || share < least || share == least && r.arrival < first.arrival) {
			first, least = r, share
		}
	}
	return first
}

// displace makes a place for a request in a full queue: it takes out the newest
// request of the claim with the largest share of the queue. It returns nil if none has
// a larger share than the new request would have.
func (q *queue) displace(added Claim) *request {
	q.count.add(added, 1)
	most := q.count.share(added)
	q.count.add(added, -1)
	var newest *request
	for claim, requests := range q.claims {
		last := requests[len(requests)-1]
		switch share := q.count.share(claim); {
		case share > most, share == most && newest != nil && last.arrival > newest.arrival:
			most, newest = share, last
		}
	}
	if newest != nil {
		q.remove(newest)
	}
	return newest
}
