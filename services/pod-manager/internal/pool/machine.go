package pool

import (
	"slices"
	"time"
)

// Machine is the pools of all functions. Use [New]; it is not safe for concurrent use.
type Machine struct {
	config Config
	// since is when the template came into force that new pods are made from: when this
	// replica began, at first.
	since change
	// In the order in which they came, so that the same events lead to the same
	// actions.
	pools      []*pool
	byFunction map[Function]*pool
	byName     map[string]*pod
	leases     map[LeaseID]*lease
	// foreign are the ids of other function runners' pods, by the pod's name.
	foreign map[string]string
	// ended are the UIDs of pods that are gone, with when: a late event must not
	// bring them back.
	ended map[string]time.Time
	// starved are the names of pods that ran out of memory, with when, for as long.
	starved map[string]time.Time
	// blocked are the pools in line for a pod beyond Config.MaxPods.
	blocked []*pool

	waiting  int // leases in all queues
	turns    uint64
	events   uint64
	lastScan time.Time

	// The state of one call of Handle.
	now     time.Time
	actions []Action
	touched []*pool
	changed map[Function]struct{}
}

// New returns a machine without pods.
func New(config Config) *Machine {
	return &Machine{
		config:     config,
		byFunction: make(map[Function]*pool),
		byName:     make(map[string]*pod), leases: make(map[LeaseID]*lease), foreign: make(map[string]string),
		ended: make(map[string]time.Time), starved: make(map[string]time.Time), changed: make(map[Function]struct{}),
	}
}

// Handle takes one event and returns what is to be done about it. Time never goes
// backwards from one call to the next.
func (m *Machine) Handle(now time.Time, event Event) []Action {
	if now.After(m.now) {
		m.now = now
	}
	if m.events == 0 {
		m.since.at = m.now
	}
	m.events++
	m.actions = nil
	event.apply(m)
	// Settling a pool may touch another one: what one gives up another one gets.
	for p := m.next(); p != nil; p = m.next() {
		m.settle(p)
	}
	return m.actions
}

// next returns a pool that is to be settled: those that were touched, then those for
// whose pods there is room now; nil if there is none.
func (m *Machine) next() *pool {
	if len(m.touched) > 0 {
		p := m.touched[0]
		m.touched = slices.Delete(m.touched, 0, 1) // keeps its memory
		return p
	}
	if len(m.blocked) > 0 && m.room() {
		return m.first()
	}
	return nil
}

// settle does what the state of a pool asks for.
func (m *Machine) settle(p *pool) {
	m.changed[p.function] = struct{}{}
	m.refuseStarved(p)
	m.grant(p)
	m.grow(p)
	m.refuse(p)
	m.report(p)
	m.release(p)
}

// touch has a pool settled before Handle returns.
func (m *Machine) touch(p *pool) {
	if !slices.Contains(m.touched, p) {
		m.touched = append(m.touched, p)
	}
}

// act adds an action.
func (m *Machine) act(a Action) { m.actions = append(m.actions, a) }

// pool returns the pool of a function, a new one if there is none.
func (m *Machine) pool(f Function) *pool {
	p, ok := m.byFunction[f]
	if !ok {
		p = &pool{function: f, limits: m.config.limits(f), predecessors: make(map[int]string), emptySince: m.now, since: m.since}
		m.pools = append(m.pools, p)
		m.byFunction[f] = p
	}
	return p
}

func (e Configured) apply(m *Machine) {
	changed := e.Config.Template != m.config.Template
	former := m.config
	m.config = e.Config
	if changed && former.Template != "" {
		m.since = change{m.events, m.now}
	}
	for _, p := range m.pools {
		if changed {
			p.failure.over() // which may have been the former template's fault, or the lack of one
		}
		m.renew(p, former)
		m.touch(p)
	}
}

func (Tick) apply(m *Machine) {
	for _, p := range m.pools {
		m.keepNeeded(p)
	}
	if m.now.Sub(m.lastScan) >= m.config.ScanInterval {
		m.lastScan = m.now
		m.scan()
	}
	for _, p := range m.pools {
		m.lookForDelays(p)
		p.repeatReports = true
		if len(p.queue) > 0 || p.busy() {
			m.touch(p)
		}
	}
}
