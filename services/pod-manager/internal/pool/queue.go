// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// lease is a waiting or granted lease.
type lease struct {
	id        LeaseID
	pool      *pool
	pod       *pod // nil while the lease waits
	avoid     []string
	tried     []string // replicas that its caller called before
	requested moment
	granted   time.Time

	reported Waiting // last report
	since    time.Time
	phases   []PhaseDuration
}

// avoidsPod reports whether a pod failed the lease's caller before.
func (l *lease) avoidsPod(p *pod) bool { return slices.Contains(l.avoid, p.name) }

// enterPhase starts the next phase of a lease.
func (l *lease) enterPhase(phase Phase, now time.Time) {
	if phase == l.reported.Phase {
		return
	}
	l.endPhase(now)
	l.since = now
}

// endPhase adds the time in the current phase to the phase's total.
func (l *lease) endPhase(now time.Time) {
	if l.reported.Phase == PhaseUnknown {
		return
	}
	spent := now.Sub(l.since)
	if i := slices.IndexFunc(l.phases, func(p PhaseDuration) bool { return p.Phase == l.reported.Phase }); i >= 0 {
		l.phases[i].Duration += spent
		return
	}
	l.phases = append(l.phases, PhaseDuration{Phase: l.reported.Phase, Duration: spent})
}

// leaseTable holds the leases of all pools.
type leaseTable struct {
	known   map[LeaseID]*lease // waiting and granted leases
	granted uint64             // total number of grants
	// outOfMemory maps the names of pods that ran out of memory to the time of the report.
	outOfMemory map[string]time.Time
	pods        map[string]*pod // all pods by name
}

// enqueue adds a waiting lease.
func (t *leaseTable) enqueue(l *lease) {
	t.known[l.id] = l
	l.pool.queue = append(l.pool.queue, l)
}

// dequeue removes a lease from its queue.
func (t *leaseTable) dequeue(l *lease) {
	if i := slices.Index(l.pool.queue, l); i >= 0 {
		l.pool.queue = slices.Delete(l.pool.queue, i, i+1)
	}
}

// isWaiting reports whether a lease is still waiting.
func (t *leaseTable) isWaiting(l *lease) bool { return slices.Contains(l.pool.queue, l) }

// reject answers a waiting lease with an error.
func (t *leaseTable) reject(s *step, l *lease, class fault.Class, reason string, retryAfter time.Duration) {
	t.dequeue(l)
	delete(t.known, l.id)
	reason = cmp.Or(reason, "there is no pod for the function, and Kubernetes does not say why")
	s.emit(Reject{Lease: l.id, Class: class, Reason: reason, RetryAfter: retryAfter})
}

// rejectExhausted rejects a waiting lease because of a limit.
func (t *leaseTable) rejectExhausted(s *step, l *lease, format string, args ...any) {
	t.reject(s, l, fault.Exhausted, fmt.Sprintf(format, args...), time.Second)
}

// grantWaiting grants waiting leases in order of arrival. A lease with a pending verdict does not block later leases.
func (t *leaseTable) grantWaiting(s *step, p *pool) {
	for i := 0; i < len(p.queue); {
		l := p.queue[i]
		if t.memoryVerdictOf(s.at, l) == pending {
			i++
			continue
		}
		chosen := choosePod(p, l)
		if chosen == nil {
			return
		}
		t.dequeue(l)
		t.grantOn(s, chosen, l)
	}
}

// grantOn grants a lease on a pod.
func (t *leaseTable) grantOn(s *step, chosen *pod, l *lease) {
	l.endPhase(s.at)
	l.pod, l.granted = chosen, s.at
	t.granted++
	chosen.use.lastGrant = t.granted
	chosen.use.leases++
	chosen.use.total++
	p := l.pool
	p.leasesTotal++
	cold := chosen.becameReady.event > l.requested.event && !chosen.foundRunning
	if cold {
		p.coldStartsTotal++
	}
	if chosen.state.usable() {
		chosen.extendExpiry(s)
	}
	s.emit(Grant{
		Lease: l.id, Function: p.function, Pod: chosen.name, UID: chosen.uid, Address: chosen.observed.Address,
		Identity: chosen.observed.Identity, ByTag: chosen.observed.ByTag, Cold: cold, Phases: l.phases,
	})
}

// choosePod returns the best pod for a lease. It is nil if no pod has capacity.
func choosePod(p *pool, l *lease) *pod {
	var best *pod
	for _, candidate := range p.pods {
		suitable := candidate.state == ready && candidate.use.leases < p.limits.MaxConcurrency
		if suitable && (best == nil || isBetter(candidate, best, l)) {
			best = candidate
		}
	}
	return best
}

// isBetter reports whether a is a better choice than b: pods that the lease avoids are last, then the least loaded pod
// is better, then the least recently used pod.
func isBetter(a, b *pod, l *lease) bool {
	if avoidA, avoidB := l.avoidsPod(a), l.avoidsPod(b); avoidA != avoidB {
		return avoidB
	}
	if a.use.leases != b.use.leases {
		return a.use.leases < b.use.leases
	}
	return a.use.lastGrant < b.use.lastGrant
}

// terminalProblem returns the reason why no pod of p will serve its waiting leases, and the delay before a retry. It
// returns the zero Problem if a pod may serve them, or can be created.
func (p *pool) terminalProblem(now time.Time) (Problem, time.Duration) {
	var stalled *pod
	for _, pod := range p.pods {
		switch {
		case !pod.state.usable():
		case !pod.stall.tooLong:
			return Problem{}, 0
		case stalled == nil:
			stalled = pod
		}
	}
	switch {
	case stalled != nil:
		return stalled.observed.Problem, 0
	case p.failure.until.After(now):
		return p.failure.problem, p.failure.until.Sub(now)
	default:
		return Problem{}, 0
	}
}

// redirectLease sends a lease to the replica at an address, or to any replica if the address is empty.
func (t *leaseTable) redirectLease(s *step, l *lease, owner, reason string) {
	t.dequeue(l)
	delete(t.known, l.id)
	s.emit(Reject{Lease: l.id, Class: fault.Unavailable, Reason: reason, Elsewhere: true, Owner: owner})
}

// rejectAll rejects all waiting leases of a pool because of a problem.
func (t *leaseTable) rejectAll(s *step, p *pool, problem Problem, retryAfter time.Duration) {
	for len(p.queue) > 0 {
		if problem.Unreachable {
			t.redirectLease(s, p.queue[0], "", problem.Reason)
			continue
		}
		t.reject(s, p.queue[0], problem.Kind.faultClass(), problem.Reason, retryAfter)
	}
}

// reportWaiting reports the causes of the wait to waiting leases. full is the reason if there is no capacity for a
// further pod. Changed positions alone are reported with the next tick, because each grant changes all of them.
func (t *leaseTable) reportWaiting(s *step, p *pool, full string) {
	if len(p.queue) == 0 {
		return
	}
	general := p.progress(full)
	for i, l := range p.queue {
		now := general
		if t.memoryVerdictOf(s.at, l) == pending {
			now = Waiting{Phase: PhaseQueued, Reason: "finding out why pods " + strings.Join(l.avoid, " and ") + " broke"}
		}
		now.Position = i + 1
		last := l.reported
		if !p.reportPositions {
			last.Position = now.Position
		}
		if now == last {
			continue
		}
		l.enterPhase(now.Phase, s.at)
		l.reported = now
		s.emit(Report{Lease: l.id, Waiting: now})
	}
	p.reportPositions = false
}

// progress describes the wait of p's leases: for the most advanced starting pod, or for a free pod.
func (p *pool) progress(full string) Waiting {
	var lead *pod
	for _, pod := range p.pods {
		if (pod.state == creating || pod.state == starting) && (lead == nil || pod.phase() > lead.phase()) {
			lead = pod
		}
	}
	if lead == nil {
		busy := fmt.Sprintf("all %d pods of the function are busy", p.countUsable())
		return Waiting{Phase: PhaseQueued, Reason: cmp.Or(full, busy)}
	}
	reason := cmp.Or(lead.observed.Reason, "making pod "+lead.name+" ready")
	return Waiting{Phase: lead.phase(), Reason: reason, Pod: lead.name}
}

const (
	// maxOutOfMemoryPods is the number of pods lost to memory after which an evaluation is rejected. A single loss may
	// be another evaluation's fault.
	maxOutOfMemoryPods = 2
	// verdictTimeout is the time for which a lease waits for the kubelet's report about its caller's broken pods. The
	// check of a pod may need that long; the kubelet needs a second.
	verdictTimeout = 2 * checkTimeout
)

// memoryVerdict is the verdict about the pods that a lease's caller lost.
type memoryVerdict int

const (
	notOutOfMemory memoryVerdict = iota // some pod had another cause, or its cause stays unknown
	pending                             // the kubelet may still report causes
	outOfMemory
)

// distinctNames returns each name once: a pod that broke twice is a single pod.
func distinctNames(names []string) []string {
	var first []string
	for _, name := range names {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// memoryVerdictOf returns outOfMemory if all pods that a lease's caller lost ran out of memory. Callers notice a
// broken pod before the kubelet reports the cause.
func (t *leaseTable) memoryVerdictOf(now time.Time, l *lease) memoryVerdict {
	if len(l.avoid) < maxOutOfMemoryPods {
		return notOutOfMemory
	}
	found := outOfMemory
	for _, name := range l.avoid {
		pod := t.pods[name]
		switch {
		case t.ranOutOfMemory(name):
		case pod != nil && pod.awaitsExplanation() && now.Sub(l.requested.at) < verdictTimeout:
			found = pending
		default:
			return notOutOfMemory
		}
	}
	return found
}

func (t *leaseTable) ranOutOfMemory(pod string) bool {
	_, ran := t.outOfMemory[pod]
	return ran
}

// checkAvoided checks the pods that failed a lease's caller and still count as ready: a request often arrives before
// the report of the caller's last lease, and before the kubelet's report.
func (t *leaseTable) checkAvoided(s *step, l *lease) {
	for _, name := range l.avoid {
		if pod := t.pods[name]; pod != nil && pod.state == ready {
			pod.check(s, true, whyChecked)
		}
	}
}

// rejectOutOfMemory rejects leases whose callers' pods all ran out of memory. A further pod would most likely run out
// of memory too, and interrupt its other evaluations.
func (t *leaseTable) rejectOutOfMemory(s *step, p *pool) {
	if len(t.outOfMemory) == 0 {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if t.memoryVerdictOf(s.at, l) != outOfMemory {
			continue
		}
		t.reject(s, l, fault.Precondition, fmt.Sprintf("out of memory: the kernel ended pods %s while they ran "+
			"this evaluation: give the function a larger memory limit, or make the package smaller",
			strings.Join(l.avoid, " and ")), 0)
	}
}
