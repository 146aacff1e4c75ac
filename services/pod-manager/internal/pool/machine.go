// SPDX-License-Identifier: Apache-2.0

package pool

import (
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
	owners     owners
	takeovers  int64
	reach      reach
	lastScan   time.Time
	step       step
}

// New returns a machine without pods.
func New(config Config) *Machine {
	m := &Machine{
		config: config, capacity: capacity{max: config.MaxPods, replicas: 1},
		owners: owners{of: alone, replicas: 1}, reach: reach{silent: make(map[string]moment)},
		byFunction: make(map[Function]*pool), pods: newPods(),
	}
	m.leases = leases{known: make(map[LeaseID]*lease), outOfMemory: make(map[string]time.Time), pods: m.pods.byName}
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
		m.evict(&m.step)
	}
	if dirty := m.step.dirty; len(dirty) > 0 {
		p := dirty[0]
		m.step.dirty = slices.Delete(dirty, 0, 1) // keeps its memory
		return p
	}
	if p := m.capacity.first(); p != nil && m.capacity.admits(m.step.at, p, len(m.pods.byName)) {
		return p
	}
	return nil
}

// pool returns the pool of a function, a new one if there is none.
func (m *Machine) pool(s *step, f Function) *pool {
	p, ok := m.byFunction[f]
	if !ok {
		limits := m.config.limits(f)
		p = &pool{
			function: f, limits: limits, version: m.config.version(limits), since: m.since,
			predecessors: make(map[int]string), emptySince: s.at, all: &m.pods,
			owner: m.owners.of(f), ownedSince: m.owners.since,
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
	if m.config.Spread != nil {
		p.expiry.spread = m.config.Spread(p.name)
	}
	m.pods.add(p)
	p.pool.add(p)
}

// remove forgets a pod that is gone.
func (m *Machine) remove(s *step, p *pod) {
	m.pods.remove(p, s.at)
	delete(m.reach.silent, p.name)
	p.pool.remove(s, p)
}

// scan drains pods that expired and that there are too many of, and forgets what is old.
func (m *Machine) scan(s *step) {
	for _, p := range m.pools {
		if p.owner.Mine {
			p.collect(s)
		}
	}
	separate(s, m.pools)
	for _, p := range m.pools {
		if p.owner.Mine {
			p.trim(s)
		}
	}
	m.pools = slices.DeleteFunc(m.pools, func(p *pool) bool {
		if !p.forgettable(s.at) {
			return false
		}
		delete(m.byFunction, p.function)
		m.capacity.leave(p)
		return true
	})
	old := func(_ string, at time.Time) bool { return s.age(at) >= goneFor }
	maps.DeleteFunc(m.pods.gone, old)
	maps.DeleteFunc(m.leases.outOfMemory, old)
}
