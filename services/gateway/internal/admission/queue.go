// SPDX-License-Identifier: Apache-2.0

package admission

import "slices"

// oldestEvery reserves every fourth free slot for the oldest request that may start. All other slots prefer functions
// and callers with few evaluations. A request of a busy function or caller could otherwise wait forever.
const oldestEvery = 4

type request struct {
	claim   Claim
	arrival int
	slot    *evaluation // slot of the request; set before decided receives nil
	decided chan error  // buffered for one value: nil for a slot, or the error of a rejection
}

// queue contains the requests that wait for a slot. The map claims groups them by function and caller, in order of
// arrival. A search for the oldest request therefore visits only the first request of each group.
type queue struct {
	count    tally
	claims   map[Claim][]*request
	arrivals int // number of requests since the start
	turn     int // number of slots given since the oldest request got a slot
}

func newQueue() queue { return queue{count: newTally(), claims: map[Claim][]*request{}} }

func (q *queue) addRequest(claim Claim) *request {
	q.arrivals++
	r := &request{claim: claim, arrival: q.arrivals, decided: make(chan error, 1)}
	q.claims[claim] = append(q.claims[claim], r)
	q.count.addCount(claim, 1)
	return r
}

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

// popNext removes and returns the queued request that gets the next free slot, or nil if no request may start. Usually
// it prefers the function and the caller with the fewest running evaluations. If the oldest request got none of the
// last three slots, popNext assigns slots in order of arrival until the oldest request starts.
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

func (q *queue) oldest() *request {
	var oldest *request
	for _, requests := range q.claims {
		if r := requests[0]; oldest == nil || r.arrival < oldest.arrival {
			oldest = r
		}
	}
	return oldest
}

// firstStartable returns the oldest queued request that may start now, or nil. If byShares is true, it considers only
// the requests whose function and caller run the fewest evaluations.
func (q *queue) firstStartable(s *slots, byShares bool) *request {
	var first *request
	least := 0
	for claim, requests := range q.claims {
		r, share := requests[0], 0
		if byShares {
			share = s.running.shareOf(claim)
		}
		if s.fits(claim) && (first == nil || share < least || (share == least && r.arrival < first.arrival)) {
			first, least = r, share
		}
	}
	return first
}

// displace makes room for a new request in a full queue. It finds the function and caller with the most queued
// requests, and removes and returns their newest request. The new request counts as queued in this comparison. If its
// own function and caller have the most requests, displace removes no request and returns nil.
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
