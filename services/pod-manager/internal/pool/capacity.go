// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"time"
)

const (
	// turnTime is how long a pool without pods waits at the limit before a pod in use is evicted
	// for it, and the minimum time that such a pod has been ready.
	turnTime = 10 * time.Second
	// watchLag is how long it may take until other replicas see a pod that this one created.
	watchLag = 2 * time.Second
)

// capacity bounds the pods of all pools together.
type capacity struct {
	max  int     // 0 for any number
	line []*pool // the pools that wait for a pod, first come, first served
	due  bool    // evict has to run: the line or the pods may have changed
	// replicas is how many replicas create pods within the same limit.
	replicas int
	// created is when this replica created the pods that others may not see yet.
	created []time.Time
	// beyondSince is since when there are more pods than there may be; zero if there are not.
	beyondSince time.Time
	victims     victims
}

// free reports whether another pod may be created when there are pods already. Replicas do not see
// at once what others create, so each creates no more than its share of the capacity at a time, and
// at least one.
func (c *capacity) free(now time.Time, pods int) bool {
	if c.max <= 0 {
		return true
	}
	if c.replicas <= 1 {
		return pods < c.max
	}
	c.created = slices.DeleteFunc(c.created, func(at time.Time) bool { return now.Sub(at) >= watchLag })
	share := (c.max - pods + len(c.created)) / c.replicas
	return pods < c.max && len(c.created) < max(share, 1)
}

// borrows reports whether a pool without a pod may have one beyond the limit. Where replicas
// share the limit, the pods that can be evicted for it may be another replica's: it sees one pod
// above the limit then, and evicts one.
func (c *capacity) borrows(p *pool, pods int) bool {
	return c.replicas > 1 && pods == c.max && len(c.created) == 0 && p.usable() == 0 && len(p.queue) > 0
}

// admits reports whether p may have a further pod: there is capacity, and no other pool
// comes first.
func (c *capacity) admits(now time.Time, p *pool, pods int) bool {
	first := c.first()
	return c.max <= 0 || (c.free(now, pods) || c.borrows(p, pods)) && (first == nil || first == p)
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

// enter adds a pool to the line.
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

// leave removes a pool from the line.
func (c *capacity) leave(p *pool) {
	p.needySince = time.Time{}
	c.line = slices.DeleteFunc(c.line, func(other *pool) bool { return other == p })
}

// change makes the next eviction search victims again: time has passed, or the rules have changed.
func (c *capacity) change() { c.due, c.victims.searched = true, false }

// spend records that this replica creates a pod.
func (c *capacity) spend(now time.Time) {
	if c.max > 0 && c.replicas > 1 {
		c.created = append(c.created, now)
	}
}

// evict drains as many pods of other pools as the line needs, and as there are beyond the limit,
// once for each time that either may have changed. Pods that are going already count, unless
// they take so long that they may never go.
func (m *Machine) evict(s *step) {
	c := &m.capacity
	c.due = false
	if c.max <= 0 {
		return
	}
	beyond := len(m.pods.byName) - c.max - m.pods.going(s.at)
	c.exceed(s.at, beyond)
	if len(c.line)+beyond <= 0 {
		return
	}
	m.capacity.victims.refresh(s.at, m.pools)
	if beyond > 0 {
		m.evictBeyond(s, beyond)
		beyond = 0
	}
	line := slices.Clone(c.line)
	slices.SortStableFunc(line, func(a, b *pool) int { return cmp.Compare(min(a.usable(), 1), min(b.usable(), 1)) })
	for _, p := range line[min(-beyond, len(line)):] {
		victim := c.victims.next(s.at, p)
		if victim == nil {
			return // nor is there one for pools that come after it
		}
		victim.evictForCapacity(s, "its capacity is needed for a pod of "+p.function.Reference)
	}
}

// exceed records since when there are more pods than there may be.
func (c *capacity) exceed(now time.Time, beyond int) {
	switch {
	case beyond <= 0:
		c.beyondSince = time.Time{}
	case c.beyondSince.IsZero():
		c.beyondSince = now
	}
}

// evictBeyond drains pods beyond the limit. All replicas see the same pods unused for longest, and
// each drains those of them that it owns; an owner may know better that one is in use, so
// with each second over the limit, more idle pods are considered. After turnTime, each replica drains its
// part of the pods in use too.
func (m *Machine) evictBeyond(s *step, beyond int) {
	c := &m.capacity
	lasted := s.age(c.beyondSince)
	if c.replicas > 1 {
		beyond = c.victims.mine(s.at, beyond*(1+int(lasted/time.Second)), beyond)
	}
	for range beyond {
		victim := c.victims.idle(s.at)
		if victim == nil && lasted >= turnTime {
			victim = c.victims.used(s.at)
		}
		if victim == nil {
			return
		}
		victim.evictForCapacity(s, "there are more pods than there may be")
	}
}

// evictForCapacity evicts a pod.
func (p *pod) evictForCapacity(s *step, why string) {
	p.drain(s, why, removal{eviction: evictionCapacity, undoable: idle(s.at, p)})
}
