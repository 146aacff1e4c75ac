// SPDX-License-Identifier: Apache-2.0

package probe

// queue is the probes that wait for a turn. Turns go round: to the newest probe that had none, to
// the oldest one that had none, and to one that had some. A pod that has just started answers at
// once, and must not wait behind thousands that are silent; nor must those wait for ever.
//
// It holds at most one live probe for each pod. Ended probes stay in it until there are as
// many of them as of live ones.
type queue struct {
	fresh, tried []*probe
	over         int // how many in it have ended
	turns        int
}

func (q *queue) addFresh(p *probe) { q.fresh = append(q.fresh, p) }
func (q *queue) addTried(p *probe) { q.tried = append(q.tried, p) }

// next removes and returns the probe whose turn it is; nil if none waits.
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

// removeNext removes a probe, ended or not. There is one.
func (q *queue) removeNext() (next *probe) {
	last := len(q.fresh) - 1
	switch {
	case last < 0, q.turns%3 == 2 && len(q.tried) > 0:
		next, q.tried = q.tried[0], q.tried[1:]
	case q.turns%3 == 0:
		next, q.fresh = q.fresh[last], q.fresh[:last]
	default:
		next, q.fresh = q.fresh[0], q.fresh[1:]
	}
	return next
}

// countEnded records that a probe in the queue has ended.
func (q *queue) countEnded() {
	if q.over++; 2*q.over > len(q.fresh)+len(q.tried) {
		q.fresh, q.tried, q.over = liveProbes(q.fresh), liveProbes(q.tried), 0
	}
}

// liveProbes returns the probes that have not ended.
func liveProbes(probes []*probe) []*probe {
	var kept []*probe
	for _, p := range probes {
		if !p.over {
			kept = append(kept, p)
		}
	}
	return kept
}
