// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"time"
)

// quotaRetry is the delay before pods are created again after a ResourceQuota refused a pod. The delay ends early
// when a pod is deleted.
const quotaRetry = 10 * time.Second

// takeoverTime is the maximum time until other replicas take over the functions of a replica that cannot renew its
// Lease.
const takeoverTime = 20 * time.Second

// watchLag is the maximum delay before this replica observes another replica's extension of a pod's expiry.
const watchLag = 2 * time.Second

// capacity tracks whether the namespace's ResourceQuota is used up. While it is used up, pools that need a pod wait in
// line, and the least recently used idle pods are deleted to make room.
type capacity struct {
	line []*pool // pools that wait for a pod, sorted by arrival
	// refused is the message with which Kubernetes last refused a pod. Until refusedUntil, this replica creates no pods.
	refused      string
	refusedUntil time.Time
}

func (c *capacity) atQuota(now time.Time) bool { return now.Before(c.refusedUntil) }

// admits reports whether pool p may create a pod now: the quota has room, and no other pool is first in the line.
func (c *capacity) admits(now time.Time, p *pool) bool {
	line := c.rankedLine()
	return !c.atQuota(now) && (len(line) == 0 || line[0] == p)
}

// rankedLine returns the pools that wait for capacity. Pools without a usable pod come first.
func (c *capacity) rankedLine() []*pool {
	line := slices.Clone(c.line)
	slices.SortStableFunc(line, func(a, b *pool) int {
		return cmp.Compare(min(a.countUsable(), 1), min(b.countUsable(), 1))
	})
	return line
}

func (c *capacity) leaveLine(p *pool) {
	c.line = slices.DeleteFunc(c.line, func(other *pool) bool { return other == p })
}

// enterLine adds a pool to the line for capacity if leases wait for it or an outdated pod must be replaced.
// Otherwise it removes the pool from the line.
func (m *Machine) enterLine(s *step, p *pool) {
	if len(p.queue) == 0 && !p.needsSurge(s.at) {
		m.capacity.leaveLine(p)
	} else if !slices.Contains(m.capacity.line, p) {
		m.capacity.line = append(m.capacity.line, p)
	}
}

// evictIdle drains idle pods to make room for waiting pools while the ResourceQuota is used up. Each pod that is
// already being removed makes room for one pool at the start of the line. For each further pool, it drains an idle pod
// of this replica's functions. If there is none, it redirects callers of pools without usable pods to other replicas,
// since they know their own idle pods best. Idle pods of other owners are drained last, see mayEvictForeign.
func (m *Machine) evictIdle(s *step) {
	if !m.capacity.atQuota(s.at) || len(m.capacity.line) == 0 {
		return
	}
	own, foreign := m.idlePods(s, true), m.idlePods(s, false)
	line := m.capacity.rankedLine()
	for _, p := range line[min(m.countLeaving(s.at), len(line)):] {
		if evictFor(s, p, &own) {
			continue
		}
		m.sendOn(s, p)
		if m.mayEvictForeign(s, p) {
			evictFor(s, p, &foreign)
		}
	}
}

// evictFor drains the first idle pod of another pool to make room for pool p. It also removes this pod from the list of
// idle pods. It returns false if there is no such pod.
func evictFor(s *step, p *pool, idle *[]*pod) bool {
	i := slices.IndexFunc(*idle, func(pod *pod) bool { return pod.pool != p })
	if i < 0 {
		return false
	}
	evicted := (*idle)[i]
	r := removal{eviction: evictionCapacity}
	if !evicted.pool.owner.isCertain() {
		r.version = evicted.observed.ResourceVersion
	}
	evicted.drain(s, "its capacity is needed for a pod of "+p.function.Reference, r)
	*idle = slices.Delete(*idle, i, i+1)
	return true
}

// mayEvictForeign reports whether idle pods of other owners may be drained for a pool. If callers can use other
// replicas, the pool's oldest lease must first wait for 20 s (takeoverTime). This is because an owner without access to
// the Kubernetes API cannot report that its pods are in use. Within the 20 s, such an owner loses its functions.
func (m *Machine) mayEvictForeign(s *step, p *pool) bool {
	return m.config.InProcess || p.owner.Alone ||
		(len(p.queue) > 0 && s.age(p.queue[0].requested.at) >= takeoverTime)
}

// countLeaving counts the pods that are being removed and so make room for new pods. A pod no longer counts after 2
// minutes (deletionTimeout), because its deletion may never complete.
func (m *Machine) countLeaving(now time.Time) int {
	n := 0
	for _, p := range m.pods.byName {
		leaving := !p.state.usable() && (p.observed.Deleting || p.isDeletedHere())
		if leaving && now.Sub(p.since) < deletionTimeout {
			n++
		}
	}
	return n
}

// idlePods returns idle pods, least recently used first. If owned is true, these are the idle pods of functions that
// only this replica owns. If owned is false, they are all other idle pods, except pods whose expiry another replica
// recently extended. Replicas regularly extend the expiry of pods in use, so such pods are probably not idle.
func (m *Machine) idlePods(s *step, owned bool) []*pod {
	var idle []*pod
	for _, p := range m.pools {
		for _, pod := range p.pods {
			foreignUse := pod.expiry.foreign.Add(-p.limits.TTL)
			unused := owned || s.age(foreignUse) > extensionInterval(p.limits.TTL)+watchLag
			if p.owner.isCertain() == owned && pod.isIdle() && unused {
				idle = append(idle, pod)
			}
		}
	}
	slices.SortFunc(idle, func(a, b *pod) int {
		return cmp.Or(a.lastUse().Compare(b.lastUse()), cmp.Compare(a.use.lastGrant, b.use.lastGrant),
			cmp.Compare(a.name, b.name))
	})
	return idle
}

// sendOn redirects waiting callers to other replicas if the pool has no usable pod. Callers that have already tried all
// replicas continue to wait here.
func (m *Machine) sendOn(s *step, p *pool) {
	if p.countUsable() > 0 || m.config.InProcess {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if len(l.tried)+1 < m.ownership.replicas {
			m.leases.redirectLease(s, l, "", m.capacity.waitReason())
			s.markDirty(p)
		}
	}
}

// waitReason explains to users why a function waits for capacity.
func (c *capacity) waitReason() string {
	return "Kubernetes has no room for a further function pod, and all are in use: " + c.refused
}
