// SPDX-License-Identifier: Apache-2.0

package probe

import "slices"

// queue contains the probes that wait for a turn. A turn is a limited time to run. Fresh probes have not had a turn
// yet. Tried probes had a turn without success. Turns alternate between the newest fresh probe, the oldest fresh probe
// and the oldest tried probe. New pods therefore do not wait behind thousands of unresponsive pods, and no pod waits
// forever. Cancelled probes stay in the queue until they outnumber the other probes.
type queue struct {
	fresh, tried []*probe
	over         int // number of cancelled probes in the queue
	turns        int
}

func (q *queue) addFresh(p *probe) { q.fresh = append(q.fresh, p) }
func (q *queue) addTried(p *probe) { q.tried = append(q.tried, p) }

// next removes and returns the next probe that is not cancelled, or nil if there is none.
func (q *queue) next() *probe {
	for len(q.fresh)+len(q.tried) > 0 {
		next := q.removeNext()
		if !next.over {
			q.turns++
			return next
		}
		q.over--
	}
	return nil
}

// removeNext removes and returns the next probe, which may be cancelled. The queue must not be empty.
func (q *queue) removeNext() (next *probe) {
	last := len(q.fresh) - 1
	switch {
	case last < 0, q.turns%3 == 2 && len(q.tried) > 0:
		next, q.tried = q.tried[0], q.tried[1:]
	case q.turns%3 == 0:
		next = q.fresh[last]
		q.fresh = q.fresh[:last]
	default:
		next, q.fresh = q.fresh[0], q.fresh[1:]
	}
	return next
}

// countEnded counts a probe that was cancelled in the queue. Once cancelled probes are the majority, it removes them to
// limit the memory of the queue.
func (q *queue) countEnded() {
	if q.over++; 2*q.over > len(q.fresh)+len(q.tried) {
		cancelled := func(p *probe) bool { return p.over }
		q.fresh = slices.DeleteFunc(q.fresh, cancelled)
		q.tried = slices.DeleteFunc(q.tried, cancelled)
		q.over = 0
	}
}
