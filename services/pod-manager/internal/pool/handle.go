// SPDX-License-Identifier: Apache-2.0

package pool

func (e LeaseRequested) apply(m *Machine) {
	s := &m.step
	p := m.pool(s, e.Function)
	s.mark(p)
	l := &lease{id: e.Lease, pool: p, avoid: distinct(e.Avoid), tried: e.Tried, requested: s.moment}
	if p.owner.Mine {
		p.replaceOutdated(s)
	}
	m.leases.enqueue(l)
	m.leases.inquire(s, l)
	m.leases.rejectOutOfMemory(s, p)
	m.leases.grant(s, p) // a lease that is granted at once never fills the queue
	m.turnAway(s, p)
	if !m.leases.waits(l) {
		return
	}
	switch {
	case len(p.queue) > p.limits.MaxQueue:
		m.leases.exhausted(s, l, "%d evaluations wait for %s already, which is the limit",
			p.limits.MaxQueue, p.function.Reference)
	case m.leases.waiting > m.config.MaxWaiting:
		p = longest(p, m.pools)
		s.mark(p)
		m.leases.exhausted(s, p.queue[len(p.queue)-1],
			"%d evaluations wait for function pods already, which is the limit", m.config.MaxWaiting)
	}
}

func (e LeaseEnded) apply(m *Machine) {
	s := &m.step
	l, ok := m.leases.known[e.Lease]
	if !ok {
		return
	}
	delete(m.leases.known, l.id)
	s.mark(l.pool)
	if l.pod == nil {
		m.leases.dequeue(l)
		return
	}
	l.pod.use.leases--
	if l.pod.state.usable() { // a draining pod is not extended
		l.pod.extend(s)
	}
	switch {
	case e.Broken != "":
		l.pool.recheck(s, l.pod, e.Broken)
	case e.Abandoned:
		l.pool.suspect(s, l.pod)
	default:
		l.pod.use.broken = 0
	}
}

func (e PodObserved) apply(m *Machine) {
	s, o := &m.step, e.Observation
	if _, gone := m.pods.gone[o.UID]; gone {
		return
	}
	p, known := m.pods.byName[o.Name]
	if known && p.newerThan(o) {
		return
	}
	another := known && p.uid != "" && p.uid != o.UID
	if another && o.Created.Before(p.seen.Created) {
		return // a late event of the pod that had the name before
	}
	if another {
		m.remove(s, p) // its name is another pod's now
		known = false
	}
	if !known {
		p = &pod{
			pool: m.pool(s, o.Function), slot: o.Slot, name: o.Name, state: starting, since: s.at,
			adopted: true, foundRunning: o.running(), created: o.Created,
		}
		m.add(s, p)
	}
	if o.Problem.OutOfMemory {
		m.leases.outOfMemory[p.name] = s.at
	}
	p.pool.follow(s, p, p.see(s, o))
	s.mark(p.pool)
}

func (e ForeignObserved) apply(m *Machine) { m.pods.setForeign(e.Name, e.ID) }

func (e PodGone) apply(m *Machine) {
	s := &m.step
	m.pods.setForeign(e.Name, "")
	p, ok := m.pods.byName[e.Name]
	if !ok || p.uid != "" && p.uid != e.UID {
		if e.UID != "" {
			m.pods.gone[e.UID] = s.at
		}
		return
	}
	p.uid = e.UID // if it came and went unseen, its successor needs another name all the same
	if p.state.usable() {
		p.pool.countDeletion(s, p)
	}
	m.remove(s, p)
}

func (e CreateFailed) apply(m *Machine) {
	p, ok := m.pods.byName[e.Name]
	if !ok || p.state != creating {
		return
	}
	p.pool.countFailure(&m.step, e.Problem)
	if e.Problem.Unreachable && m.owners.replicas > 1 {
		m.leases.rejectAll(&m.step, p.pool, e.Problem, 0) // another replica may do it at once
	}
	m.remove(&m.step, p)
}

func (e DeleteFailed) apply(m *Machine) {
	s := &m.step
	p, ok := m.pods.byName[e.Name]
	if !ok || p.uid != e.UID || p.state != deleting || p.seen.Deleting {
		return
	}
	p.setState(s.at, draining, p.why)
	p.removal.retryAt = s.at.Add(deletionRetry)
	s.mark(p.pool)
}

func (e Probed) apply(m *Machine) {
	s := &m.step
	p, ok := m.pods.byName[e.Name]
	if !ok || p.uid != e.UID || p.health.asked == "" || p.health.question != e.Question {
		return
	}
	p.health.asked = ""
	s.mark(p.pool)
	if e.Unhealthy == "" {
		m.hear(p)
		p.revive(s)
	}
	if p.state != starting && p.state != checking && !p.doubted() {
		return
	}
	if e.Unhealthy != "" {
		m.drainSilent(s, p, "pod "+p.name+" does not answer: "+e.Unhealthy)
		return
	}
	p.markReady(s)
	p.pool.failure.reset()
}

func (e MinPodsSet) apply(m *Machine) {
	if e.Pods <= 0 && m.byFunction[e.Function] == nil {
		return
	}
	p := m.pool(&m.step, e.Function)
	p.minPods = e.Pods
	m.step.mark(p)
}

func (e Configured) apply(m *Machine) {
	s := &m.step
	if former := m.config.Template; former != "" && former != e.Config.Template {
		m.since = s.moment
	}
	m.config, m.capacity.max = e.Config, e.Config.MaxPods
	m.capacity.change()
	for _, p := range m.pools {
		p.configure(s, m.config)
	}
}

func (Tick) apply(m *Machine) {
	s := &m.step
	m.capacity.change()
	m.judgeReach(s)
	for _, p := range m.pools {
		p.extendNeeded(s)
	}
	if s.age(m.lastScan) >= m.config.ScanInterval {
		m.lastScan = s.at
		m.scan(s)
	}
	for _, p := range m.pools {
		m.timeOut(s, p)
		p.reportPositions = true
		if p.needsTick() {
			s.mark(p)
		}
	}
}

// timeOut fails the pods of a pool that take too long.
func (m *Machine) timeOut(s *step, p *pool) {
	for i := len(p.pods) - 1; i >= 0; i-- { // one may go
		pod := p.pods[i]
		if pod.stalling(s.at, pod.stallTimeout(m.config.SchedulingTimeout)) {
			s.mark(p)
		}
		switch problem := pod.overdue(s.at, m.config.SchedulingTimeout); {
		case problem.Kind == None:
		case !p.tends() && pod.state == starting: // its owner decides about it
		case pod.state == creating:
			// It may not be there, or be in use by another replica, which chose the same
			// name. If it is there it will be adopted.
			p.countFailure(s, problem)
			m.remove(s, pod)
		case pod.state == checking:
			m.drainSilent(s, pod, problem.Reason)
		default:
			p.drainFailed(s, pod, problem)
		}
	}
}
