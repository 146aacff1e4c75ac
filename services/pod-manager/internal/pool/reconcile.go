// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"slices"
)

// reconcile does what the state of a pool asks for.
func (m *Machine) reconcile(s *step, p *pool) {
	m.leases.rejectOutOfMemory(s, p)
	m.leases.grant(s, p)
	m.turnAway(s, p)
	m.tend(s, p)
	m.grow(s, p)
	m.reject(s, p)
	m.leases.report(s, p, m.fullReason(p))
	m.release(s, p)
	p.recount()
}

// tend asks the pods of a pool that another replica owns, while leases wait for them here.
func (m *Machine) tend(s *step, p *pool) {
	if p.owner.Mine || len(p.queue) == 0 {
		return
	}
	for _, pod := range p.pods {
		if pod.state == starting && pod.seen.Address != "" {
			pod.probe(s, 0)
		}
	}
}

// grow creates the pods that a pool wants and may have.
func (m *Machine) grow(s *step, p *pool) {
	if !p.tends() || m.reach.lost != "" {
		m.capacity.leave(p)
		return
	}
	if p.failure.backsOff(p.demand() > 0, s.at) {
		m.capacity.leave(p)
		return
	}
	for p.usable() < p.wanted() {
		if !m.capacity.admits(s.at, p, len(m.pods.byName)) {
			m.wait(s, p)
			return
		}
		m.capacity.leave(p) // for a further pod it enters the line again
		cause := ForMinimum
		if p.usable() < p.podsFor(p.demand()) {
			cause = ForLeases
		}
		m.create(s, p, cause)
	}
	m.capacity.leave(p)
}

// wait puts a pool in line for a pod if leases wait for that.
func (m *Machine) wait(s *step, p *pool) {
	if len(p.queue) == 0 {
		m.capacity.leave(p)
		return
	}
	m.capacity.enter(p, s.at)
}

// create asks for one more pod.
func (m *Machine) create(s *step, p *pool, reason Reason) {
	since := s.at
	if len(p.queue) > 0 {
		since = p.queue[0].requested.at
	}
	p.failure.expire(since)
	slot, name := m.pods.freeSlot(m.config, p)
	end := s.at.Add(p.limits.TTL)
	m.capacity.spend(s.at)
	m.capacity.due = m.capacity.due || m.capacity.max > 0 && len(m.pods.byName) >= m.capacity.max
	m.add(s, &pod{
		pool: p, slot: slot, name: name, state: creating, since: s.at, created: s.at,
		countsAsAttempt: true, expiry: expiry{at: end, written: end},
	})
	created := Create{Function: p.function, Slot: slot, Name: name, ReclaimAfter: end, Reason: reason}
	if n := len(p.queue); n > 0 {
		created.For = p.queue[n-1].id
	}
	s.emit(created)
}

// reject rejects the waiting leases of a pool for which there will be no pod.
func (m *Machine) reject(s *step, p *pool) {
	if len(p.queue) == 0 {
		return
	}
	if problem, retryAfter := hopeless(s.at, p); problem.Kind != None {
		m.leases.rejectAll(s, p, problem, retryAfter)
		m.capacity.leave(p)
		return
	}
	if p.needySince.IsZero() {
		return
	}
	// There was no capacity for as long as a pod may take to become ready: Kubernetes may
	// not delete draining pods, or too many pools want one.
	timeout := p.limits.ReadyTimeout
	for _, l := range slices.Clone(p.queue) {
		if s.age(l.requested.at) < timeout || s.age(p.needySince) < timeout {
			continue
		}
		m.leases.exhausted(s, l,
			"the limit of %d function pods is reached, and there was no capacity for %s within %s",
			m.config.MaxPods, p.function.Reference, timeout)
	}
	if len(p.queue) == 0 {
		m.capacity.leave(p)
	}
}

// fullReason is the reason that waiting leases get while their pool waits for capacity; empty if it does not.
func (m *Machine) fullReason(p *pool) string {
	if len(p.queue) == 0 || !slices.Contains(m.capacity.line, p) {
		return ""
	}
	return fmt.Sprintf("there are %d function pods, which is the limit, and all are in use", m.config.MaxPods)
}

// release deletes draining pods that hold no lease, if this replica owns them.
func (m *Machine) release(s *step, p *pool) {
	if !p.deletes(s.at) {
		return
	}
	for _, pod := range p.pods {
		if pod.state.usable() || pod.use.leases > 0 || s.at.Before(pod.removal.retryAt) || !m.confirms(s, pod) {
			continue
		}
		first := pod.removal.retryAt.IsZero()
		pod.removal.retryAt = s.at.Add(deletionTimeout)
		switch {
		case pod.seen.Deleting && first: // another client asked for it
		case pod.seen.Deleting || pod.removal.unsound || !pod.mayUndrain(s.at):
			m.delete(s, pod)
		case p.usable() >= p.limits.MaxPods:
			pod.why = "the function has a pod in its place"
			pod.removal.eviction, pod.removal.undoable = evictionSurplus, false
			m.delete(s, pod)
		default:
			pod.undrain(s)
		}
	}
}

// delete asks for the deletion of a pod.
func (m *Machine) delete(s *step, p *pod) {
	p.setState(s.at, deleting, p.why)
	p.health.asked = ""
	action := Delete{
		Name: p.name, UID: p.uid, Function: p.pool.function, Slot: p.slot,
		Reason: p.why, Eviction: p.removal.eviction,
	}
	if !p.removal.unsound && !p.seen.Deleting {
		action.ResourceVersion = p.seen.ResourceVersion
	}
	s.emit(action)
}
