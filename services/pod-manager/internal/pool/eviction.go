// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"time"
)

// quotaRetry is the delay before the next attempt to create a pod after a quota refused a pod. The deletion of a pod
// ends the delay.
const quotaRetry = 10 * time.Second

// watchLag is the maximum delay until this replica observes that another replica extended a pod's expiry.
const watchLag = 2 * time.Second

// capacity tracks whether the ResourceQuota of the namespace is reached. While it is reached, pools that need a pod
// wait in line, and the least recently used idle pods are evicted for them.
type capacity struct {
	line []*pool // pools that wait for a pod, sorted by arrival
	// refused is Kubernetes' message about the last refused pod. refusedUntil is the time when creating a pod is
	// attempted again.
	refused      string
	refusedUntil time.Time
}

// recordRefusal records that a quota refused a pod.
func (c *capacity) recordRefusal(now time.Time, reason string) {
	c.refused = reason
	c.refusedUntil = now.Add(quotaRetry)
}

func (c *capacity) atQuota(now time.Time) bool { return now.Before(c.refusedUntil) }

// admits reports whether p may create a pod: the quota is not reached, and no other pool is before p in line.
func (c *capacity) admits(now time.Time, p *pool) bool {
	first := c.nextInLine()
	return !c.atQuota(now) && (first == nil || first == p)
}

// nextInLine returns the pool that gets the next pod. It is nil if no pool waits in line.
func (c *capacity) nextInLine() *pool {
	if len(c.line) == 0 {
		return nil
	}
	return c.rankedLine()[0]
}

// rankedLine returns the pools in line. Pools without a pod come before pools that need a further pod.
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

// enterLine adds a pool to the line if leases or outdated pods wait for a pod.
func (m *Machine) enterLine(s *step, p *pool) {
	if len(p.queue) == 0 && !p.needsSurge(s.at) {
		m.capacity.leaveLine(p)
	} else if !slices.Contains(m.capacity.line, p) {
		m.capacity.line = append(m.capacity.line, p)
	}
}

// evictIdle drains an idle pod for each pool in line while the quota is reached: first pods of pools that this
// replica owns, then pods of other pools. Pods that are already leaving make room for the first pools in line. If no
// pod is idle, the callers of a pool without a pod are sent to other replicas, because those know better which of
// their own pods are idle.
func (m *Machine) evictIdle(s *step) {
	if !m.capacity.atQuota(s.at) || len(m.capacity.line) == 0 {
		return
	}
	idle := slices.Concat(m.idlePods(s, true), m.idlePods(s, false))
	line := m.capacity.rankedLine()
	for _, p := range line[min(m.countLeaving(s.at), len(line)):] {
		i := slices.IndexFunc(idle, func(pod *pod) bool { return pod.pool != p })
		if i < 0 {
			m.sendOn(s, p)
			continue
		}
		idle[i].drain(s, "its capacity is needed for a pod of "+p.function.Reference, removal{eviction: evictionCapacity})
		idle = slices.Delete(idle, i, i+1)
	}
}

// countLeaving counts the draining and deleting pods. A pod that has been leaving for deletionTimeout does not count,
// because it may never be gone.
func (m *Machine) countLeaving(now time.Time) int {
	n := 0
	for _, p := range m.pods.byName {
		if !p.state.usable() && now.Sub(p.since) < deletionTimeout {
			n++
		}
	}
	return n
}

// idlePods returns idle pods, least recently used first. If owned is true, these are pods of pools that this replica
// owns, otherwise pods of all other pools. Other replicas extend the expiries of pods that they use, once per
// extensionInterval. So if no other replica extended a pod's expiry for longer than that, no other replica uses the
// pod.
func (m *Machine) idlePods(s *step, owned bool) []*pod {
	var idle []*pod
	for _, p := range m.pools {
		for _, pod := range p.pods {
			foreignUse := pod.expiry.foreign.Add(-p.limits.TTL)
			unused := owned || s.age(foreignUse) > extensionInterval(p.limits.TTL)+watchLag
			if p.owner.Mine == owned && pod.isIdle() && unused {
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

// sendOn redirects the waiting leases of a pool without a pod to other replicas. Leases whose callers have tried all
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

// waitReason returns the reason that pools wait in line, as a text for users.
func (c *capacity) waitReason() string {
	return "Kubernetes has no room for a further function pod, and all are in use: " + c.refused
}
