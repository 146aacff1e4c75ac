// SPDX-License-Identifier: Apache-2.0

package admission

import "slices"

// oldestEvery gives every fourth slot to the oldest request that may start, regardless of the shares of its function
// and caller. Fairness by shares alone would delay a request while requests with smaller shares keep arriving.
const oldestEvery = 4

// request is a queued request.
type request struct {
	claim   Claim
	arrival int
	slot    *evaluation // set before decided gets nil
	decided chan error  // of size one; nil means a slot
}

// queue contains the queued requests, by claim and in order of arrival. Claims are few, so iterating over the first
// request of each is fast.
type queue struct {
	count    tally
	claims   map[Claim][]*request
	arrivals int // requests so far
	turn     int // slots since the oldest request was served
}

func newQueue() queue { return queue{count: newTally(), claims: map[Claim][]*request{}} }

// addRequest appends a request.
func (q *queue) addRequest(claim Claim) *request {
	q.arrivals++
	r := &request{claim: claim, arrival: q.arrivals, decided: make(chan error, 1)}
	q.claims[claim] = append(q.claims[claim], r)
	q.count.addCount(claim, 1)
	return r
}

// removeRequest removes a request, and reports whether the queue contained it.
func (q *queue) removeRequest(r *request) bool {
	requests := q.claims[r.claim]
	i := slices.Index(requests, r)
	if i < 0 {
		return false
	}
	q.count.addCount(r.claim, -1)
	q.claims[r.claim] = slices.Delete(requests, i, i+1)
	if len(requests) == 1 {
		delete(q.claims, r.claim)
	}
	return true
}

// popNext removes and returns the request to start now, or nil if none may start. In a reserve, the oldest request that
// may start may differ from the oldest of all: the turn of the latter then lasts until it gets a slot.
func (q *queue) popNext(s *slots) *request {
	next := q.firstStartable(s, q.turn < oldestEvery-1)
	if next == nil {
		return nil
	}
	if q.turn++; next == q.oldest() {
		q.turn = 0
	}
	q.removeRequest(next)
	return next
}

// oldest returns the oldest request.
func (q *queue) oldest() *request {
	var oldest *request
	for _, requests := range q.claims {
		if r := requests[0]; oldest == nil || r.arrival < oldest.arrival {
			oldest = r
		}
	}
	return oldest
}

// firstStartable returns the oldest request that may start now; by shares, the oldest of those
// whose function and caller run the fewest evaluations.
func (q *queue) firstStartable(s *slots, byShares bool) *request {
	var first *request
	least := 0
	for claim, requests := range q.claims {
		r, share := requests[0], 0
		if byShares {
			share = s.running.shareOf(claim)
		}
		if s.fits(claim) && (first == nil || share < least || share == least && r.arrival < first.arrival) {
			first, least = r, share
		}
	}
	return first
}

// displace makes space for a request in a full queue: it removes and returns the newest request of the claim with the
// largest share of the queue. It returns nil if no share is larger than the new request's would be.
func (q *queue) displace(added Claim) *request {
	q.count.addCount(added, 1)
	most := q.count.shareOf(added)
	q.count.addCount(added, -1)
	var newest *request
	for claim, requests := range q.claims {
		last := requests[len(requests)-1]
		switch share := q.count.shareOf(claim); {
		case share > most, share == most && newest != nil && last.arrival > newest.arrival:
			most, newest = share, last
		}
	}
	if newest != nil {
		q.removeRequest(newest)
	}
	return newest
}
