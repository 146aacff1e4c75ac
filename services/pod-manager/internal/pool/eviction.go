// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"time"
)

// quotaRetry is the time between two attempts to create a pod while a quota of Kubernetes refuses pods and no pod is
// deleted.
const quotaRetry = 10 * time.Second

// capacity is what a ResourceQuota of the namespace leaves. While the quota is reached, the pod that has been idle for
// the longest time is evicted for a pool that needs a pod. If no pod is idle, pools wait in line.
type capacity struct {
	line []*pool // pools that wait for a pod, in order of arrival
	// refused is Kubernetes' message about the last pod that the quota refused, and refusedUntil the time at which the
	// pool tries again.
	refused      string
	refusedUntil time.Time
}

// refuse records that a quota refused a pod.
func (c *capacity) refuse(now time.Time, reason string) {
	c.refused = reason
	c.refusedUntil = now.Add(quotaRetry)
}

// exhausted reports whether the quota is reached.
func (c *capacity) exhausted(now time.Time) bool { return now.Before(c.refusedUntil) }

// admits reports whether p may have a further pod: there is capacity, and no other pool comes first.
func (c *capacity) admits(now time.Time, p *pool) bool {
	first := c.first()
	return !c.exhausted(now) && (first == nil || first == p)
}

// first returns the pool that gets the next pod; nil if none waits. Pools without a pod come before pools that want
// more.
func (c *capacity) first() *pool {
	if len(c.line) == 0 {
		return nil
	}
	return c.ranked()[0]
}

// ranked returns the line with the pools without a pod first.
func (c *capacity) ranked() []*pool {
	line := slices.Clone(c.line)
	slices.SortStableFunc(line, func(a, b *pool) int { return cmp.Compare(min(a.usable(), 1), min(b.usable(), 1)) })
	return line
}

// leave removes a pool from the line.
func (c *capacity) leave(p *pool) {
	c.line = slices.DeleteFunc(c.line, func(other *pool) bool { return other == p })
}

// wait puts a pool in line for a pod if leases or outdated pods wait for that.
func (m *Machine) wait(s *step, p *pool) {
	if len(p.queue) == 0 && !p.surges(s.at) {
		m.capacity.leave(p)
	} else if !slices.Contains(m.capacity.line, p) {
		m.capacity.line = append(m.capacity.line, p)
	}
}

// evict drains as many idle pods as the line needs while the quota is reached. Pods that are leaving already count. A
// pool without a pod for which this replica has no idle pod sends its callers to other replicas, which own idle pods of
// their own.
func (m *Machine) evict(s *step) {
	if !m.capacity.exhausted(s.at) || len(m.capacity.line) == 0 {
		return
	}
	idle := m.idlePods()
	line := m.capacity.ranked()
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

// countLeaving counts the pods that make room soon. A pod that takes so long to leave that it may never do is not
// counted.
func (m *Machine) countLeaving(now time.Time) int {
	n := 0
	for _, p := range m.pods.byName {
		if !p.state.usable() && now.Sub(p.since) < deletionTimeout {
			n++
		}
	}
	return n
}

// idlePods returns the idle pods of the pools that this replica owns, least recently used first.
func (m *Machine) idlePods() []*pod {
	var idle []*pod
	for _, p := range m.pools {
		for _, pod := range p.pods {
			if p.owner.Mine && pod.idle() {
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

// sendOn sends the waiting leases of a pool without a pod to other replicas. A caller that has asked all of them waits
// here.
func (m *Machine) sendOn(s *step, p *pool) {
	if p.usable() > 0 || m.config.InProcess {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if len(l.tried)+1 < m.ownership.replicas {
			m.leases.redirect(s, l, "", m.capacity.reason())
			s.mark(p)
		}
	}
}

// reason returns why pools wait in line.
func (c *capacity) reason() string {
	return "Kubernetes has no room for a further function pod, and all are in use: " + c.refused
}
