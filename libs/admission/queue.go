package admission

import "slices"

// oldestEvery is how often a free slot goes to the request that has waited longest,
// whatever its function and caller run: every fourth time. Fairness by shares alone
// would let a request wait for as long as others with smaller shares keep coming.
const oldestEvery = 4

// request is one that waits.
type request struct {
	claim   Claim
	arrival int
	decided chan error // of size one: nil for a slot, or why there will be none
}

// queue has the requests that wait, by claim and within a claim by arrival. There are
// few claims, so looking at the first request of each is fast.
type queue struct {
	count    tally
	claims   map[Claim][]*request
	arrivals int // requests so far
	turn     int // slots that became free since the oldest request's last turn
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

// oldestInTurn takes out the request that has waited longest if it is its turn; nil if
// it is not, or none waits. It is called once for each slot that becomes free.
func (q *queue) oldestInTurn() *request {
	if q.count.total == 0 {
		return nil
	}
	if q.turn = (q.turn + 1) % oldestEvery; q.turn != 0 {
		return nil
	}
	var oldest *request
	for _, requests := range q.claims {
		if r := requests[0]; oldest == nil || r.arrival < oldest.arrival {
			oldest = r
		}
	}
	q.remove(oldest)
	return oldest
}

// next takes out the request that may start now and whose function and caller run the
// fewest evaluations; nil if none may start.
func (q *queue) next(s *slots) *request {
	var next *request
	least := 0
	for claim, requests := range q.claims {
		r, share := requests[0], s.running.share(claim)
		if s.fits(claim) && (next == nil || share < least || share == least && r.arrival < next.arrival) {
			next, least = r, share
		}
	}
	if next != nil {
		q.remove(next)
	}
	return next
}

// displace makes a place for a request in a full queue: it takes out the newest
// request of the claim with the largest share of the queue. It returns nil if none has
// a larger share than the new request would have.
func (q *queue) displace(newcomer Claim) *request {
	q.count.add(newcomer, 1)
	most := q.count.share(newcomer)
	q.count.add(newcomer, -1)
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
