// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Machine is the pools of all functions. Use [New]; it is not safe for concurrent use.
type Machine struct {
	config Config
	// since is when the template came into force that new pods are made from: when this
	// replica began, at first.
	since moment
	// In the order in which they came, so that the same events lead to the same actions.
	pools      []*pool
	byFunction map[Function]*pool
	pods       pods
	leases     leases
	capacity   capacity
	lastScan   time.Time
	step       step
}

// New returns a machine without pods.
func New(config Config) *Machine {
	m := &Machine{
		config: config, capacity: capacity{max: config.MaxPods},
		byFunction: make(map[Function]*pool), pods: newPods(),
	}
	m.leases = leases{known: make(map[LeaseID]*lease), starved: make(map[string]time.Time), pods: m.pods.byName}
	return m
}

// Handle takes one event and returns what is to be done about it. Time never goes backwards
// from one call to the next.
func (m *Machine) Handle(now time.Time, event Event) []Action {
	s := &m.step
	if now.After(s.at) {
		s.at = now
	}
	if s.event == 0 {
		m.since.at = s.at
	}
	s.event++
	s.actions = nil
	event.apply(m)
	// Reconciling a pool may mark another one: one gets what the other gives up.
	for p := m.next(); p != nil; p = m.next() {
		m.reconcile(s, p)
	}
	return s.actions
}

// next returns a pool to reconcile: first dirty pools, then pools of which pods are evicted,
// then pools for whose pods there is capacity now; nil if there is none.
func (m *Machine) next() *pool {
	if len(m.step.dirty) == 0 && m.capacity.due {
		m.capacity.evict(&m.step, m.pods.byName, m.pools)
	}
	if dirty := m.step.dirty; len(dirty) > 0 {
		p := dirty[0]
		m.step.dirty = slices.Delete(dirty, 0, 1) // keeps its memory
		return p
	}
	if m.capacity.free(len(m.pods.byName)) {
		return m.capacity.first()
	}
	return nil
}

// reconcile does what the state of a pool asks for.
func (m *Machine) reconcile(s *step, p *pool) {
	m.leases.rejectStarved(s, p)
	m.leases.grant(s, p)
	m.grow(s, p)
	m.reject(s, p)
	m.leases.report(s, p, m.full(p))
	m.release(s, p)
}

// pool returns the pool of a function, a new one if there is none.
func (m *Machine) pool(s *step, f Function) *pool {
	p, ok := m.byFunction[f]
	if !ok {
		limits := m.config.limits(f)
		p = &pool{
			function: f, limits: limits, version: m.config.version(limits), since: m.since,
			predecessors: make(map[int]string), emptySince: s.at,
		}
		m.pools = append(m.pools, p)
		m.byFunction[f] = p
	}
	return p
}

// add takes a pod that is new here.
func (m *Machine) add(s *step, p *pod) {
	p.known = s.moment
	p.id = m.config.PodID(p.pool.function, p.slot)
	m.pods.add(p)
	p.pool.add(p)
}

// remove forgets a pod that is gone.
func (m *Machine) remove(s *step, p *pod) {
	m.pods.remove(p, s.at)
	p.pool.remove(s, p)
}

// grow creates the pods that a pool wants and may have.
func (m *Machine) grow(s *step, p *pool) {
	if p.failure.backsOff(p.demand() > 0, s.at) {
		m.capacity.leave(p)
		return
	}
	for p.usable() < p.wanted() {
		if !m.capacity.admits(p, len(m.pods.byName)) {
			m.wait(s, p)
			return
		}
		m.capacity.leave(p) // for a further pod it enters the line again
		m.create(s, p)
	}
	m.capacity.leave(p)
}

// wait has a pool wait in line for a pod if leases wait for that.
func (m *Machine) wait(s *step, p *pool) {
	if len(p.queue) == 0 {
		m.capacity.leave(p)
		return
	}
	m.capacity.enter(p, s.at)
}

// create asks for one more pod.
func (m *Machine) create(s *step, p *pool) {
	since := s.at
	if len(p.queue) > 0 {
		since = p.queue[0].requested.at
	}
	p.failure.expire(since)
	slot, name := m.pods.freeSlot(m.config, p)
	end := s.at.Add(p.limits.TTL)
	m.add(s, &pod{
		pool: p, slot: slot, name: name, state: creating, since: s.at, created: s.at,
		countsAsAttempt: true, expiry: expiry{at: end, written: end},
	})
	s.emit(Create{Function: p.function, Slot: slot, Name: name, ReclaimAfter: end})
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
	// not delete the pods that are to go, or too many pools want one.
	timeout := p.limits.ReadyTimeout
	for _, l := range slices.Clone(p.queue) {
		if s.age(l.requested.at) < timeout || s.age(p.needySince) < timeout {
			continue
		}
		m.leases.exhausted(s, l,
			"there are %d function pods, which is the limit, and none of them made room for one of %s for %s",
			m.config.MaxPods, p.function.Reference, timeout)
	}
	if len(p.queue) == 0 {
		m.capacity.leave(p)
	}
}

// full is why the leases of a pool wait that is in line; empty if it is not.
func (m *Machine) full(p *pool) string {
	if len(p.queue) == 0 || !slices.Contains(m.capacity.line, p) {
		return ""
	}
	return fmt.Sprintf("there are %d function pods, which is the limit, and all are in use", m.config.MaxPods)
}

// release deletes the pods that are to go and hold no lease.
func (m *Machine) release(s *step, p *pool) {
	for _, pod := range p.pods {
		if pod.state.usable() || pod.use.active > 0 || s.at.Before(pod.removal.retryAt) {
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
			pod.removal.eviction, pod.removal.idle = evictionSurplus, false
			m.delete(s, pod)
		default:
			pod.undrain(s)
		}
	}
}

// delete asks for the deletion of a pod.
func (m *Machine) delete(s *step, p *pod) {
	p.setState(s.at, deleting, p.why)
	action := Delete{
		Name: p.name, UID: p.uid, Function: p.pool.function, Slot: p.slot,
		Reason: p.why, Eviction: p.removal.eviction,
	}
	if !p.removal.unsound && !p.seen.Deleting {
		action.ResourceVersion = p.seen.ResourceVersion
	}
	s.emit(action)
}

// scan drains pods that expired and that there are too many of, and forgets what is over.
func (m *Machine) scan(s *step) {
	for _, p := range m.pools {
		p.collect(s)
	}
	separate(s, m.pools)
	for _, p := range m.pools {
		p.trim(s)
	}
	m.pools = slices.DeleteFunc(m.pools, func(p *pool) bool {
		if !p.forgettable(s.at) {
			return false
		}
		delete(m.byFunction, p.function)
		m.capacity.leave(p)
		return true
	})
	over := func(_ string, at time.Time) bool { return s.age(at) >= goneFor }
	maps.DeleteFunc(m.pods.gone, over)
	maps.DeleteFunc(m.leases.starved, over)
}
