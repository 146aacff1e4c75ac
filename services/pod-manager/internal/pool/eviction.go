// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// watchLag is how long it may take until other replicas see a pod that this one created.
	watchLag = 2 * time.Second
	// quotaRetry is when to try again to create a pod that a quota of Kubernetes refused, if no pod is deleted before.
	quotaRetry = 10 * time.Second
)

// capacity bounds the pods of all pools together. At the limit, the pod that has been idle for the longest time is
// evicted. If none is idle, pools wait in line.
type capacity struct {
	max  int     // 0 for any number
	line []*pool // pools that wait for a pod, in order of arrival
	due  bool    // true if evict must run: the line or the pods may have changed
	// replicas is the number of replicas that create pods within the same limit.
	replicas int
	// created are the times at which this replica created the pods that others may not see yet.
	created []time.Time
	// excessSince is since when there are more pods than the limit. It is zero if there are not.
	excessSince time.Time
	// oldest are the idle pods of all replicas, least recently used first. They are searched at most once between two
	// ticks: requests at the limit must not each visit all pods.
	oldest   []*pod
	searched bool
	// refused is why Kubernetes' quota refused the last pod, and refusedUntil when to try again.
	refused      string
	refusedUntil time.Time
}

// refuse records that a quota of Kubernetes has no room for a further pod.
func (c *capacity) refuse(now time.Time, reason string) {
	c.refused, c.refusedUntil = reason, now.Add(quotaRetry)
	c.change()
}

// exhausted reports whether a quota of Kubernetes has no room.
func (c *capacity) exhausted(now time.Time) bool { return now.Before(c.refusedUntil) }

// free reports whether another pod may be created in addition to pods. Replicas do not see at once what others
// create, so each creates no more than its share of the capacity concurrently, and at least one.
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

// borrows reports whether a pool without a pod may have one beyond the limit. If replicas share the limit, all idle
// pods may belong to another replica: that one sees one pod beyond the limit then, and evicts one.
func (c *capacity) borrows(p *pool, pods int) bool {
	return c.replicas > 1 && pods == c.max && len(c.created) == 0 && p.usable() == 0 && len(p.queue) > 0
}

// admits reports whether p may have a further pod: there is capacity, and no other pool comes first.
func (c *capacity) admits(now time.Time, p *pool, pods int) bool {
	first := c.first()
	return !c.exhausted(now) && (c.free(now, pods) || c.borrows(p, pods)) && (first == nil || first == p)
}

// first returns the pool that gets the next pod; nil if none waits. Pools without a pod come before pools that want
// more.
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
func (c *capacity) enter(p *pool) {
	if !slices.Contains(c.line, p) {
		c.line, c.due = append(c.line, p), true
	}
}

// leave removes a pool from the line.
func (c *capacity) leave(p *pool) {
	c.line = slices.DeleteFunc(c.line, func(other *pool) bool { return other == p })
}

// change makes the next eviction search idle pods again: time has passed, or the rules have changed.
func (c *capacity) change() { c.due, c.searched = true, false }

// spend records that this replica creates a pod.
func (c *capacity) spend(now time.Time) {
	if c.max > 0 && c.replicas > 1 {
		c.created = append(c.created, now)
	}
}

// reason returns why pools wait in line.
func (c *capacity) reason(now time.Time) string {
	if c.exhausted(now) {
		return "Kubernetes has no room for a further function pod: " + c.refused
	}
	return fmt.Sprintf("there are %d function pods, which is the limit, and all are in use", c.max)
}

// evict drains as many idle pods as the line needs, and as there are beyond the limit. It runs once after each change
// of either. Pods that are leaving already count, unless they may never leave.
func (m *Machine) evict(s *step) {
	c := &m.capacity
	c.due = false
	pods, limit := len(m.pods.byName), c.max
	if c.exhausted(s.at) {
		limit = pods
	}
	if limit <= 0 {
		return
	}
	excess := pods - limit - m.pods.countLeaving(s.at)
	switch {
	case excess <= 0:
		c.excessSince = time.Time{}
	case c.excessSince.IsZero():
		c.excessSince = s.at
	}
	if len(c.line)+excess <= 0 {
		return
	}
	c.searchIdle(m.pools)
	if excess > 0 {
		c.evictExcess(s, excess)
		excess = 0
	}
	line := slices.Clone(c.line)
	slices.SortStableFunc(line, func(a, b *pool) int { return cmp.Compare(min(a.usable(), 1), min(b.usable(), 1)) })
	for _, p := range line[min(-excess, len(line)):] {
		if !c.evictOldest(s, p, "its capacity is needed for a pod of "+p.function.Reference) {
			return // nor is there one for pools that come after it
		}
	}
}

// evictExcess drains pods beyond the limit. All replicas see the same pods unused for the longest time, and each
// drains those of them that it owns. A pod's owner may know better that the pod is in use, so with each second over
// the limit, more idle pods are considered.
func (c *capacity) evictExcess(s *step, excess int) {
	evictions := excess
	if c.replicas > 1 {
		evictions = c.ownedAmongOldest(excess*(1+int(s.age(c.excessSince)/time.Second)), excess)
	}
	for range evictions {
		if !c.evictOldest(s, nil, "there are more pods than the limit") {
			return
		}
	}
}

// searchIdle searches the idle pods, unless that was done since the last tick.
func (c *capacity) searchIdle(pools []*pool) {
	if c.searched {
		return
	}
	c.searched, c.oldest = true, c.oldest[:0]
	for _, p := range pools {
		for _, pod := range p.pods {
			if pod.idle() {
				c.oldest = append(c.oldest, pod)
			}
		}
	}
	slices.SortFunc(c.oldest, func(a, b *pod) int {
		return cmp.Or(a.lastUse().Compare(b.lastUse()), cmp.Compare(a.use.lastGrant, b.use.lastGrant),
			cmp.Compare(a.name, b.name))
	})
}

// evictOldest drains the pod of this replica that has been idle for the longest time, for a pod of p if that is not
// nil. It reports whether there is one.
func (c *capacity) evictOldest(s *step, p *pool, why string) bool {
	for i, pod := range c.oldest {
		if pod.idle() && pod.pool.owner.Mine && pod.pool != p {
			c.oldest = slices.Delete(c.oldest, i, i+1)
			pod.drain(s, why, removal{eviction: evictionCapacity})
			return true
		}
	}
	return false
}

// ownedAmongOldest counts how many of the n least recently used idle pods belong to this replica, up to limit.
func (c *capacity) ownedAmongOldest(n, limit int) int {
	owned := 0
	for _, p := range c.oldest {
		if n == 0 || owned == limit {
			break
		}
		if !p.idle() {
			continue
		}
		n--
		if p.pool.owner.Mine {
			owned++
		}
	}
	return owned
}

// wait puts a pool in line for a pod if leases or outdated pods wait for that.
func (m *Machine) wait(s *step, p *pool) {
	if len(p.queue) == 0 && !p.surges(s.at) {
		m.capacity.leave(p)
		return
	}
	m.capacity.enter(p)
}

// noRoom reports whether no pod can be created in addition to outdated ones, although pods of the current template
// are known to work.
func (m *Machine) noRoom(s *step) bool {
	return m.config.Template != "" && m.provenTemplate == m.config.Template &&
		(m.capacity.exhausted(s.at) || m.capacity.max > 0 && len(m.pods.byName) >= m.capacity.max)
}
