// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Machine decides which pods of all functions exist, and which pods serve which leases. A Machine is not safe for
// concurrent use.
type Machine struct {
	config Config
	// since is the last change of the template. Before the first change, it is the start of this replica.
	since moment
	// pools is sorted by creation time, so that the same events always lead to the same actions.
	pools        []*pool
	byFunction   map[Function]*pool
	pods         podIndex
	leases       leaseTable
	capacity     capacity
	ownership    ownership
	connectivity connectivity
	lastScan     time.Time
	step         step
}

// New returns a machine without pods.
func New(config Config) *Machine {
	m := &Machine{
		config: config, byFunction: make(map[Function]*pool),
		ownership: ownership{
			of: func(Function) Owner { return Owner{Mine: true, Alone: true} }, replicas: 1,
		},
		connectivity: connectivity{silent: make(map[string]moment)},
		pods: podIndex{
			byName: make(map[string]*pod), ids: make(map[string]string), idUses: make(map[string]int),
			gone: make(map[string]time.Time),
		},
	}
	m.leases = leaseTable{known: make(map[LeaseID]*lease), outOfMemory: make(map[string]time.Time), pods: m.pods.byName}
	return m
}

// Handle applies an event and returns the resulting actions. now must not be earlier than in the previous call.
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
	event.applyTo(m, s)
	// Reconciling a pool may require reconciling another pool, such as the next pool that waits for capacity.
	for p := m.nextPool(); p != nil; p = m.nextPool() {
		m.reconcile(s, p)
	}
	return s.actions
}

// nextPool returns the next pool to reconcile, or nil. Pools marked as dirty come first. Then comes the first pool that
// waits for capacity, if the ResourceQuota has room.
func (m *Machine) nextPool() *pool {
	if dirty := m.step.dirty; len(dirty) > 0 {
		p := dirty[0]
		m.step.dirty = slices.Delete(dirty, 0, 1) // keeps the capacity of the slice
		return p
	}
	if line := m.capacity.rankedLine(); len(line) > 0 && !m.capacity.atQuota(m.step.at) {
		return line[0]
	}
	return nil
}

// pool returns the pool of a function, and creates the pool if it does not exist.
func (m *Machine) pool(s *step, f Function) *pool {
	p, ok := m.byFunction[f]
	if !ok {
		p = &pool{
			function: f, since: m.since, predecessors: make(map[int]string), emptySince: s.at, owner: m.ownership.of(f),
		}
		p.configure(s, m.config)
		m.pools = append(m.pools, p)
		m.byFunction[f] = p
	}
	return p
}

// addPod adds a pod to its pool and to the index of all pods. The index must not contain the pod's name.
func (m *Machine) addPod(s *step, p *pod) {
	p.learnedAt = s.moment
	m.pods.byName[p.name] = p
	m.pods.setID(p.name, m.config.PodID(p.pool.function, p.slot))
	p.pool.pods = append(p.pool.pods, p)
	slices.SortStableFunc(p.pool.pods, func(a, b *pod) int { return cmp.Compare(a.slot, b.slot) })
}

// removePod removes a pod from memory, because it was deleted or its creation failed.
func (m *Machine) removePod(s *step, p *pod) {
	delete(m.pods.byName, p.name)
	m.pods.removeID(p.name)
	if p.uid != "" {
		m.pods.gone[p.uid] = s.at
		p.pool.predecessors[p.slot] = p.uid
	}
	delete(m.connectivity.silent, p.name)
	m.capacity.refusedUntil = time.Time{} // after the deletion, the quota may admit a new pod
	p.pool.pods = slices.DeleteFunc(p.pool.pods, func(other *pod) bool { return other == p })
	p.pool.emptySince = s.at
	p.setState(s.at, deleting, p.reason) // leases may still refer to the removed pod
	s.markDirty(p.pool)
}

// reconcile answers or redirects the leases of a pool, and creates and deletes the pool's pods.
func (m *Machine) reconcile(s *step, p *pool) {
	m.leases.rejectOutOfMemory(s, p)
	m.leases.grantWaiting(s, p)
	m.redirectWaiting(s, p)
	p.probeForOwner(s)
	p.replaceOutdated(s)
	m.createMissing(s, p)
	m.rejectWaiting(s, p)
	m.leases.reportWaiting(s, p, m.obstacleOf(p))
	m.deleteDrained(s, p)
}

// createMissing reuses or creates the pods that a pool needs. If the ResourceQuota is used up, the pool waits in line
// for capacity instead.
func (m *Machine) createMissing(s *step, p *pool) {
	p.reuseExpired(s)
	if !p.isManaged() || m.incapacity(p) != "" || p.failure.backsOff(p.countDemand() > 0, s.at) {
		m.capacity.leaveLine(p)
		return
	}
	for reason, missing := p.needsPod(s.at); missing; reason, missing = p.needsPod(s.at) {
		if !m.capacity.admits(s.at, p) {
			m.enterLine(s, p)
			return
		}
		m.capacity.leaveLine(p) // for a further pod, the pool must enter the line again
		m.createPod(s, p, reason)
	}
	m.capacity.leaveLine(p)
}

// createPod adds a new pod to the pool's lowest free slot, and emits [Create] for the pod.
func (m *Machine) createPod(s *step, p *pool, reason Reason) {
	since := s.at
	if len(p.queue) > 0 {
		since = p.queue[0].requested.at
	}
	if since.Sub(p.failure.at) >= failureMemory {
		p.failure.attempts = 0
		p.failure.backoff = 0
	}
	slot, name := m.pods.freeSlot(m.config, p)
	end := s.at.Add(p.limits.TTL)
	m.addPod(s, &pod{
		pool: p, slot: slot, name: name, state: creating, since: s.at,
		countsAsAttempt: true, expiry: expiry{at: end, written: end},
	})
	s.emit(Create{Function: p.function, Slot: slot, Name: name, ReclaimAfter: end, Reason: reason})
}

// rejectWaiting rejects the waiting leases of a pool if no pod will serve them.
func (m *Machine) rejectWaiting(s *step, p *pool) {
	if len(p.queue) == 0 {
		return
	}
	if problem, retryAfter := p.terminalProblem(s.at, m.config.SchedulingTimeout); problem.Kind != None {
		m.leases.rejectAll(s, p, problem, retryAfter)
		m.capacity.leaveLine(p)
		return
	}
	if p.countUsable() > 0 || !slices.Contains(m.capacity.line, p) {
		return
	}
	// Leases wait for capacity at most as long as a pod may take to become ready. A longer wait shows that too many pools
	// need a pod, or that Kubernetes does not delete draining pods.
	timeout := p.limits.ReadyTimeout
	for _, l := range slices.Clone(p.queue) {
		if s.age(l.requested.at) >= timeout {
			m.leases.rejectExhausted(s, l, "no capacity for a pod of %s within %s: %s", p.function.Reference, timeout,
				m.capacity.waitReason())
		}
	}
	if len(p.queue) == 0 {
		m.capacity.leaveLine(p)
	}
}

// obstacleOf returns the reason that the pool cannot create a pod for waiting leases now, or "". The reason is a
// lack of capacity, or a recent failure to create a pod.
func (m *Machine) obstacleOf(p *pool) string {
	switch {
	case slices.Contains(m.capacity.line, p):
		return m.capacity.waitReason()
	case p.failure.until.After(m.step.at):
		return p.failure.problem.Reason
	default:
		return ""
	}
}

// deleteDrained deletes the pool's draining pods without leases. It skips pods that another replica must delete.
func (m *Machine) deleteDrained(s *step, p *pool) {
	for _, pod := range p.pods {
		if pod.state.usable() || pod.use.leases > 0 || !pod.isDeletedHere() {
			continue
		}
		if s.at.Before(pod.removal.retryAt) || !m.confirmsSilence(s, pod) {
			continue
		}
		first := pod.removal.retryAt.IsZero()
		pod.removal.retryAt = s.at.Add(deletionTimeout)
		if pod.observed.Deleting && first {
			continue // another client is already deleting the pod
		}
		pod.setState(s.at, deleting, pod.reason)
		pod.health.probedAddress = ""
		s.emit(Delete{
			Name: pod.name, UID: pod.uid, Version: pod.removal.version, Function: p.function, Slot: pod.slot,
			Reason: pod.reason, Eviction: pod.removal.eviction, Foreign: !p.owner.Mine,
		})
	}
}

func (e LeaseRequested) applyTo(m *Machine, s *step) {
	p := m.pool(s, e.Function)
	s.markDirty(p)
	avoid := slices.Clone(e.Avoid)
	slices.Sort(avoid)
	l := &lease{id: e.Lease, pool: p, avoid: slices.Compact(avoid), tried: e.Tried, requested: s.moment}
	m.leases.known[l.id] = l
	p.queue = append(p.queue, l)
	m.leases.checkAvoided(s, l)
	m.leases.rejectOutOfMemory(s, p)
	m.leases.grantWaiting(s, p) // before the length check: leases granted at once need no place
	m.redirectWaiting(s, p)
	if slices.Contains(p.queue, l) && len(p.queue) > p.limits.MaxQueue {
		m.leases.rejectExhausted(s, l, "%d evaluations wait for %s already, which is the limit",
			p.limits.MaxQueue, p.function.Reference)
	}
}

func (e LeaseEnded) applyTo(m *Machine, s *step) {
	l, ok := m.leases.known[e.Lease]
	if !ok {
		return
	}
	delete(m.leases.known, l.id)
	s.markDirty(l.pool)
	if l.pod == nil {
		m.leases.dequeue(l)
		return
	}
	l.pod.use.leases--
	if l.pod.state.usable() { // draining pods keep their expiries
		l.pod.extendExpiry(s)
	}
	switch {
	case e.Broken != "":
		l.pool.recheckBroken(s, l.pod, e.Broken)
	case e.Abandoned && l.pod.state == ready:
		l.pod.check(s, true, "a caller left without an answer, and its health is being probed")
	default:
		l.pod.use.broken = 0
	}
}

func (e PodObserved) applyTo(m *Machine, s *step) {
	o := e.Observation
	if _, gone := m.pods.gone[o.UID]; gone {
		return
	}
	p, known := m.pods.byName[o.Name]
	if known && p.newerThan(o) {
		return
	}
	another := known && p.uid != "" && p.uid != o.UID
	if another && o.Created.Before(p.observed.Created) {
		return // late event about the previous pod with this name
	}
	if another {
		m.removePod(s, p) // a new pod uses the name
		known = false
	}
	if !known {
		p = &pod{
			pool: m.pool(s, o.Function), slot: o.Slot, name: o.Name, state: starting, since: s.at,
			adopted: true, foundRunning: o.containersRun(),
		}
		m.addPod(s, p)
	}
	if o.Problem.OutOfMemory {
		m.leases.outOfMemory[p.name] = s.at
	}
	p.pool.followObservation(s, p, p.storeObservation(s, o))
	s.markDirty(p.pool)
}

func (e ForeignObserved) applyTo(m *Machine, _ *step) { m.pods.setID(e.Name, e.ID) }

func (e PodGone) applyTo(m *Machine, s *step) {
	p, ok := m.pods.byName[e.Name]
	if !ok {
		m.pods.removeID(e.Name) // the pod may belong to another function runner
	}
	if !ok || (p.uid != "" && p.uid != e.UID) {
		if e.UID != "" {
			m.pods.gone[e.UID] = s.at
		}
		return
	}
	p.uid = e.UID // needed for the successor's name, even if this pod was never observed
	if p.state.usable() {
		p.pool.countDeletion(s, p)
	}
	m.removePod(s, p)
}

func (e CreateFailed) applyTo(m *Machine, s *step) {
	p, ok := m.pods.byName[e.Name]
	if !ok || p.state != creating {
		return
	}
	m.removePod(s, p)
	if e.Problem.Kind == Full {
		m.capacity.refused = e.Problem.Reason
		m.capacity.refusedUntil = s.at.Add(quotaRetry)
		m.enterLine(s, p.pool)
		m.evictIdle(s)
		return
	}
	if e.Problem.Kind == Held && !m.config.InProcess {
		// For gateways, count the temporary failure as Lost. They then get an error after a few attempts, and can retry.
		// Callers in this process wait instead until the problem has passed.
		e.Problem.Kind = Lost
	}
	// Redirect callers only if other replicas may exist. Otherwise, callers get the error after some attempts.
	e.Problem.Unreachable = e.Problem.Unreachable && !m.config.InProcess &&
		(m.ownership.replicas > 1 || !p.pool.owner.isCertain())
	p.pool.countFailure(s, e.Problem)
	if e.Problem.Unreachable {
		m.leases.rejectAll(s, p.pool, e.Problem, 0)
	}
}

func (e DeleteFailed) applyTo(m *Machine, s *step) {
	p, ok := m.pods.byName[e.Name]
	if !ok || p.uid != e.UID || p.state != deleting || p.observed.Deleting {
		return
	}
	p.setState(s.at, draining, p.reason)
	p.removal.backoff = min(max(2*p.removal.backoff, minDeletionBackoff), deletionTimeout)
	p.removal.retryAt = s.at.Add(p.removal.backoff)
	p.pool.followObservation(s, p, p.observed) // the pod may have changed since the deletion was requested
	s.markDirty(p.pool)
}

func (e Probed) applyTo(m *Machine, s *step) {
	p, ok := m.pods.byName[e.Name]
	if !ok || p.uid != e.UID || p.health.probedAddress == "" || p.health.probeNumber != e.Question {
		return
	}
	p.health.probedAddress = ""
	s.markDirty(p.pool)
	if e.Unhealthy == "" {
		m.connectivity.lastAnswer = s.event
		delete(m.connectivity.silent, p.name)
		p.reviveSilent(s)
	}
	if p.state != starting && p.state != checking {
		return
	}
	if e.Unhealthy != "" {
		m.drainSilent(s, p, "pod "+p.name+" does not answer: "+e.Unhealthy)
		return
	}
	p.markReady(s)
	p.pool.failure = failure{}
}

func (e MinPodsSet) applyTo(m *Machine, s *step) {
	if e.Pods <= 0 && m.byFunction[e.Function] == nil {
		return
	}
	p := m.pool(s, e.Function)
	p.minPods = e.Pods
	s.markDirty(p)
}

func (e Configured) applyTo(m *Machine, s *step) {
	if m.config.Template != "" && m.config.Template != e.Config.Template {
		m.since = s.moment
	}
	m.config = e.Config
	for _, p := range m.pools {
		p.configure(s, m.config)
	}
}

func (Tick) applyTo(m *Machine, s *step) {
	m.evictIdle(s)
	m.judgeConnectivity(s)
	for _, p := range m.pools {
		p.extendNeeded(s)
		m.timeOut(s, p)
		p.reportPositions = true
	}
	if s.age(m.lastScan) >= m.config.ScanInterval {
		m.lastScan = s.at
		m.collectGarbage(s)
	}
	s.dirty = append(s.dirty[:0], m.pools...) // any timeout or delay of a pool may have expired
}

// collectGarbage drains expired pods and pods above MaxPods in the pools that this replica owns. It also removes
// long-deleted pods and unused pools from memory.
func (m *Machine) collectGarbage(s *step) {
	for _, p := range m.pools {
		if p.owner.Mine {
			p.collectExpired(s)
			p.trimSurplus(s)
		}
	}
	m.pools = slices.DeleteFunc(m.pools, func(p *pool) bool {
		if len(p.pods) > 0 || len(p.queue) > 0 || p.minPods > 0 || s.age(p.emptySince) < goneFor {
			return false // keep the UIDs of deleted pods, on which the names of new pods depend
		}
		delete(m.byFunction, p.function)
		m.capacity.leaveLine(p)
		return true
	})
	old := func(_ string, at time.Time) bool { return s.age(at) >= goneFor }
	maps.DeleteFunc(m.pods.gone, old)
	maps.DeleteFunc(m.leases.outOfMemory, old)
}

// timeOut drains pods that exceed a timeout, for instance because they do not become ready. If Kubernetes never
// reported a pod, timeOut only removes it from memory.
func (m *Machine) timeOut(s *step, p *pool) {
	for i := len(p.pods) - 1; i >= 0; i-- { // backward, because the loop removes pods
		pod := p.pods[i]
		switch problem := pod.overdueProblem(s.at, m.config.SchedulingTimeout); {
		case problem.Kind == None:
		case !p.isManaged() && pod.state == starting: // the replica that owns the function decides
		case pod.state == creating:
			// Only remove the pod from memory, because it may not exist. If it exists, another replica may use it, since
			// replicas choose equal names. A later event then adds the pod to memory again.
			p.countFailure(s, problem)
			m.removePod(s, pod)
		case pod.state == checking:
			m.drainSilent(s, pod, problem.Reason)
		default:
			p.drainFailed(s, pod, problem)
		}
	}
}
