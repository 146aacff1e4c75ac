// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"time"
)

// turnTime is how long a pool may be without a pod because all pods that there may be are in
// use by others, before one of them is evicted; and how long each of them may be used before.
const turnTime = 10 * time.Second

// capacity bounds the pods of all pools together.
type capacity struct {
	max  int     // 0 for any number
	line []*pool // the pools that wait for a pod, first come, first served
	due  bool    // evictions are, since the line or what there is may have changed
}

// free reports whether there may be a further pod.
func (c *capacity) free(pods int) bool { return c.max <= 0 || pods < c.max }

// admits reports whether p may have a further pod: there is capacity, and no other pool
// comes first.
func (c *capacity) admits(p *pool, pods int) bool {
	first := c.first()
	return c.max <= 0 || c.free(pods) && (first == nil || first == p)
}

// first returns the pool that is next to get a pod; nil if none waits. Pools without a pod
// come before pools that want more.
func (c *capacity) first() *pool {
	for _, p := range c.line {
		if p.usable() == 0 {
			return p
		}
	}
	if len(c.line) > 0 {
		return c.line[0]
	}
	return nil
}

// enter has a pool wait in line.
func (c *capacity) enter(p *pool, now time.Time) {
	if !slices.Contains(c.line, p) {
		c.line, c.due = append(c.line, p), true
	}
	if p.usable() > 0 {
		p.needySince = time.Time{}
	} else if p.needySince.IsZero() {
		p.needySince = now
	}
}

// leave has a pool wait no more.
func (c *capacity) leave(p *pool) {
	p.needySince = time.Time{}
	c.line = slices.DeleteFunc(c.line, func(other *pool) bool { return other == p })
}

// evict drains as many pods of other pools as the line needs, once for each time that it
// may have changed. Pods that are going already count, unless they take so long that they
// may never go.
//
// Where there are more pods than there may be, the first pool in line needs those beyond
// the limit evicted too.
func (c *capacity) evict(s *step, pods map[string]*pod, pools []*pool) {
	c.due = false
	if len(c.line) == 0 {
		return
	}
	going := 0
	for _, pod := range pods {
		if !pod.state.usable() && s.age(pod.since) < deletionTimeout {
			going++
		}
	}
	beyond := len(pods) - c.max
	line := slices.Clone(c.line)
	slices.SortStableFunc(line, func(a, b *pool) int { return cmp.Compare(min(a.usable(), 1), min(b.usable(), 1)) })
	for i := going; i < beyond+len(line); i++ {
		p := line[max(i-beyond, 0)]
		victim := victim(s.at, p, pools)
		if victim == nil {
			return // nor is there one for pools that come after it
		}
		why := "its capacity is needed for a pod of " + p.function.Reference
		victim.drain(s, why, removal{eviction: evictionRoom, idle: idle(s.at, victim)})
	}
}

// victim returns the pod that is evicted for a pod of p: an idle one, the one unused for
// longest; for a pool without any pod, one of the pool that has the most; and for one that
// has been without for long, the one used longest ago; nil if there is none.
//
// Other replicas choose among the same pods. So what counts is what all of them see.
func victim(now time.Time, p *pool, pools []*pool) *pod {
	var victim *pod
	rank := 0
	for _, other := range pools {
		if other == p {
			continue
		}
		usable := other.usable()
		for _, candidate := range other.pods {
			r := rankOf(now, p, usable, candidate)
			if r > rank || r == rank && r > 0 && goesBefore(now, candidate, victim) {
				victim, rank = candidate, r
			}
		}
	}
	return victim
}

// rankOf is how well a pod of another pool, which has so many usable ones, suits as a
// victim; 0 if not at all.
func rankOf(now time.Time, p *pool, usable int, candidate *pod) int {
	needy := p.usable() == 0
	switch {
	case !candidate.served():
		return 0
	case idle(now, candidate):
		return 1 << 20
	case needy && usable > 1:
		return usable
	case needy && now.Sub(p.needySince) >= turnTime && now.Sub(candidate.becameReady.at) >= turnTime:
		return 1
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
	return cmp.Or(lastUse(now, a).Compare(lastUse(now, b)), cmp.Compare(a.use.turn, b.use.turn)) < 0
}

// lastUse is when a pod was last used, as far as its expiry shows.
func lastUse(now time.Time, p *pod) time.Time {
	if p.use.active > 0 {
		return now
	}
	return p.expiry.at.Add(-p.pool.limits.TTL)
}

// idle reports whether no lease uses a pod or is about to.
func idle(now time.Time, p *pod) bool {
	return p.use.active == 0 && len(p.pool.queue) == 0 && !p.usedElsewhere(now)
}

// goneFor is how long the end of a pod is remembered, which is longer than any event about
// it can be late.
const goneFor = 10 * time.Minute

// pods are the pods of all pools.
type pods struct {
	byName map[string]*pod
	// ids counts the pods by id, foreign ones included.
	ids map[string]int
	// foreign are the ids of other function runners' pods, by the pod's name.
	foreign map[string]string
	// gone are the UIDs of pods that are gone, with when: a late event must not bring
	// them back.
	gone map[string]time.Time
}

func newPods() pods {
	return pods{
		byName: make(map[string]*pod), ids: make(map[string]int),
		foreign: make(map[string]string), gone: make(map[string]time.Time),
	}
}

// add adds a pod. There is none of its name.
func (ps *pods) add(p *pod) {
	ps.byName[p.name] = p
	ps.count(p.id, 1)
}

// remove removes a pod that is gone.
func (ps *pods) remove(p *pod, now time.Time) {
	delete(ps.byName, p.name)
	ps.count(p.id, -1)
	if p.uid != "" {
		ps.gone[p.uid] = now
	}
}

// setForeign has a foreign pod of that name have an id; empty if it is gone.
func (ps *pods) setForeign(name, id string) {
	if former, ok := ps.foreign[name]; ok {
		ps.count(former, -1)
		delete(ps.foreign, name)
	}
	if id != "" {
		ps.foreign[name] = id
		ps.count(id, 1)
	}
}

func (ps *pods) count(id string, n int) {
	if ps.ids[id] += n; ps.ids[id] == 0 {
		delete(ps.ids, id)
	}
}

// freeSlot returns the lowest slot of a pool whose id no pod has, of whatever function or
// function runner, draining and deleting ones included: their names and Services are still
// taken. A pod that was found may have the name for a slot and the label of another one.
func (ps *pods) freeSlot(c Config, p *pool) (slot int, name string) {
	for slot = 1; ; slot++ {
		name = c.PodName(p.function, slot, p.predecessors[slot])
		if ps.byName[name] == nil && ps.ids[c.PodID(p.function, slot)] == 0 {
			return slot, name
		}
	}
}
