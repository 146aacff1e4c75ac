// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// victims are the pods that may be evicted. They are searched at most once between two ticks, in
// one pass over all pods: requests at the limit must not each take one.
type victims struct {
	searched bool
	// own are the pods of this replica, the best victim first.
	own candidates
	// oldest are the idle pods of all replicas, the one unused for longest first.
	oldest []*pod
}

// candidate is a pod that may be evicted, with how well it suits at most.
type candidate struct {
	*pod
	rank int
	now  time.Time
}

// candidates is a heap, the best victim first.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank > c[j].rank || c[i].rank == c[j].rank && goesBefore(c[i].now, c[i].pod, c[j].pod)
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push is that of [heap.Interface].
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop is that of [heap.Interface].
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// Ranks of victims. Between them are the pods of pools that have several, by how many.
const (
	rankIdle = 1 << 20
	rankLast = 1 // the only pod of a pool, in use
)

// refresh searches the victims, unless that was done since the last tick.
func (v *victims) refresh(now time.Time, pools []*pool) {
	if v.searched {
		return
	}
	v.searched, v.own, v.oldest = true, v.own[:0], v.oldest[:0]
	for _, p := range pools {
		usable := p.usable()
		for _, pod := range p.pods {
			v.consider(now, pod, usable)
		}
	}
	heap.Init(&v.own)
	slices.SortFunc(v.oldest, func(a, b *pod) int {
		return cmp.Or(lastUse(now, a).Compare(lastUse(now, b)), cmp.Compare(a.name, b.name))
	})
}

// consider adds a pod, whose pool has usable pods.
func (v *victims) consider(now time.Time, p *pod, usable int) {
	if !p.wasReady() {
		return
	}
	unused := idle(now, p)
	if unused {
		v.oldest = append(v.oldest, p)
	}
	if !p.pool.owner.Mine {
		return
	}
	rank := max(usable, rankLast)
	if unused {
		rank = rankIdle
	}
	v.own = append(v.own, candidate{pod: p, rank: rank, now: now})
}

// next removes and returns the pod that is evicted for a pod of p, or nil:
//   - an idle pod, the one unused for longest;
//   - for a pool without pods, one of the pool that has the most;
//   - for a pool that has waited for turnTime, the pod used longest ago.
func (v *victims) next(now time.Time, p *pool) *pod {
	return v.first(func(c *pod) (rank int, skip bool) {
		return rankOf(now, p, c), c.pool == p
	})
}

// idle removes and returns the idle pod unused for longest; nil if there is none.
func (v *victims) idle(now time.Time) *pod {
	return v.first(func(c *pod) (rank int, skip bool) {
		if idle(now, c) {
			return rankIdle, false
		}
		return 0, false
	})
}

// used removes and returns the pod in use that suits best; nil if there is none.
func (v *victims) used(now time.Time) *pod {
	return v.first(func(c *pod) (rank int, skip bool) {
		if now.Sub(c.becameReady.at) < turnTime {
			return 0, true
		}
		return max(c.pool.usable(), rankLast), false
	})
}

// first removes and returns the first pod by rank; nil if the best one has no rank, or all are skipped.
// A pod's rank may have dropped since refresh.
func (v *victims) first(rankOf func(*pod) (rank int, skip bool)) *pod {
	var skipped []candidate
	defer func() {
		for _, c := range skipped {
			heap.Push(&v.own, c)
		}
	}()
	for len(v.own) > 0 {
		best := &v.own[0]
		rank, skip := rankOf(best.pod)
		switch {
		case !best.wasReady():
			heap.Pop(&v.own)
		case skip:
			skipped = append(skipped, heap.Pop(&v.own).(candidate))
		case rank == 0 && best.rank == rankIdle: // it is in use by now
			best.rank = max(best.pool.usable(), rankLast)
			heap.Fix(&v.own, 0)
		case rank == 0:
			return nil
		case rank < best.rank:
			best.rank = rank
			heap.Fix(&v.own, 0)
		default:
			return heap.Pop(&v.own).(candidate).pod
		}
	}
	return nil
}

// mine counts this replica's pods among the idle ones that all replicas see unused for longest: of the
// first among of them, and up to most.
func (v *victims) mine(now time.Time, among, most int) int {
	n := 0
	for _, p := range v.oldest {
		if among == 0 || n == most {
			return n
		}
		if !p.wasReady() || !idle(now, p) {
			continue
		}
		among--
		if p.pool.owner.Mine {
			n++
		}
	}
	return n
}

// rankOf is how well a pod of another pool suits as a victim for p; 0 if not at all.
func rankOf(now time.Time, p *pool, candidate *pod) int {
	needy := p.usable() == 0
	switch usable := candidate.pool.usable(); {
	case idle(now, candidate):
		return rankIdle
	case needy && usable > 1:
		return usable
	case needy && now.Sub(p.needySince) >= turnTime && now.Sub(candidate.becameReady.at) >= turnTime:
		return rankLast
	default:
		return 0
	}
}

// goesBefore reports whether a is the better choice of two pods that suit equally well: a
// replica evicts its own before the pods that another replica uses, and else the one used
// longest ago.
func goesBefore(now time.Time, a, b *pod) bool {
	if usedA, usedB := a.usedElsewhere(now), b.usedElsewhere(now); usedA != usedB {
		return usedB
	}
	return cmp.Or(
		lastUse(now, a).Compare(lastUse(now, b)), cmp.Compare(a.use.turn, b.use.turn), cmp.Compare(a.known.event,
			b.known.event),
	) < 0
}

// lastUse is when a pod was last used, as far as its expiry shows.
func lastUse(now time.Time, p *pod) time.Time {
	if p.use.leases > 0 {
		return now
	}
	return p.expiry.at.Add(-p.pool.limits.TTL)
}

// idle reports whether no lease uses a pod or is about to.
func idle(now time.Time, p *pod) bool {
	return p.use.leases == 0 && len(p.pool.queue) == 0 && !p.usedElsewhere(now)
}
