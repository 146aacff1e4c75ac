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

// lease is a permission to use a pod. It waits in the queue until the pool grants it.
type lease struct {
	id        LeaseID
	pool      *pool
	pod       *pod     // nil while the lease waits
	avoid     []string // names of pods to avoid, without duplicates
	tried     []string // addresses of replicas that the caller already tried
	requested moment

	reported Waiting // last report to the caller
	since    time.Time
	phases   []PhaseDuration
}

// endPhase adds the lease's time in its current waiting phase to the phase's total.
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

type leaseTable struct {
	known   map[LeaseID]*lease // waiting and granted leases
	granted uint64             // total number of grants
	// outOfMemory maps the names of pods that ran out of memory to the time when Kubernetes reported this.
	outOfMemory map[string]time.Time
	pods        map[string]*pod // all pods by name
}

// dequeue removes a waiting lease from its pool's queue.
func (t *leaseTable) dequeue(l *lease) {
	if i := slices.Index(l.pool.queue, l); i >= 0 {
		l.pool.queue = slices.Delete(l.pool.queue, i, i+1)
	}
}

// reject removes a waiting lease from the queue, and sends the rejection r with the lease's id to the caller.
func (t *leaseTable) reject(s *step, l *lease, r Reject) {
	t.dequeue(l)
	delete(t.known, l.id)
	r.Lease = l.id
	s.emit(r)
}

// rejectExhausted rejects a waiting lease because a limit is reached. The caller may retry after a second.
func (t *leaseTable) rejectExhausted(s *step, l *lease, format string, args ...any) {
	t.reject(s, l, Reject{Class: fault.Exhausted, Reason: fmt.Sprintf(format, args...), RetryAfter: time.Second})
}

// grantWaiting grants waiting leases in order of arrival, as long as ready pods have capacity. It skips a lease while
// the kubelet's report on the caller's earlier pods is pending. The report may be that they ran out of memory.
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

func (t *leaseTable) grantOn(s *step, chosen *pod, l *lease) {
	l.endPhase(s.at)
	l.pod = chosen
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
	chosen.extendExpiry(s)
	s.emit(Grant{
		Lease: l.id, Function: p.function, Pod: chosen.name, UID: chosen.uid, Address: chosen.observed.Address,
		Identity: chosen.observed.Identity, ByTag: chosen.observed.ByTag, Cold: cold, Phases: l.phases,
	})
}

// choosePod returns the best ready pod for a lease, or nil if no ready pod has capacity.
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

// isBetter reports whether pod a is a better choice for a lease than pod b. It prefers pods that have not failed
// for this caller, then pods with fewer leases, and then the least recently used pod.
func isBetter(a, b *pod, l *lease) bool {
	avoidA, avoidB := slices.Contains(l.avoid, a.name), slices.Contains(l.avoid, b.name)
	if avoidA != avoidB {
		return avoidB
	}
	if a.use.leases != b.use.leases {
		return a.use.leases < b.use.leases
	}
	return a.use.lastGrant < b.use.lastGrant
}

// terminalProblem returns the problem that prevents all pods from serving the waiting callers. The second result is the
// delay before a retry. Both are zero if an existing or new pod may still serve the callers. The argument unscheduled
// is the time for which a pod may wait for a node.
func (p *pool) terminalProblem(now time.Time, unscheduled time.Duration) (Problem, time.Duration) {
	var stalled *pod
	for _, pod := range p.pods {
		switch {
		case !pod.state.usable():
		case !pod.isStalled(now, unscheduled):
			return Problem{}, 0
		case stalled == nil:
			stalled = pod
		}
	}
	switch {
	case stalled != nil:
		return stalled.observed.Problem, 0
	case p.failure.until.After(now) && p.failure.problem.Kind != Held:
		return p.failure.problem, p.failure.until.Sub(now)
	default:
		return Problem{}, 0
	}
}

// redirectLease redirects a waiting caller to the replica with the given address. If the address is empty, the caller
// may choose any other replica.
func (t *leaseTable) redirectLease(s *step, l *lease, owner, reason string) {
	t.reject(s, l, Reject{Class: fault.Unavailable, Reason: reason, Elsewhere: true, Owner: owner})
}

// rejectAll rejects all waiting callers of a pool because of a problem. If another replica may be able to serve
// them, it redirects the callers instead.
func (t *leaseTable) rejectAll(s *step, p *pool, problem Problem, retryAfter time.Duration) {
	for len(p.queue) > 0 {
		if problem.Unreachable {
			t.redirectLease(s, p.queue[0], "", problem.Reason)
			continue
		}
		reason := cmp.Or(problem.Reason, "there is no pod for the function, and Kubernetes does not say why")
		t.reject(s, p.queue[0], Reject{Class: problem.Kind.faultClass(), Reason: reason, RetryAfter: retryAfter})
	}
}

// reportWaiting tells waiting callers about a new cause of their wait. A new position in the queue is reported only at
// the next tick, because each grant changes all positions. The argument obstacle is the reason that the pool cannot
// create a pod, or empty.
func (t *leaseTable) reportWaiting(s *step, p *pool, obstacle string) {
	if len(p.queue) == 0 {
		return
	}
	general := p.progress(obstacle)
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
		if now.Phase != l.reported.Phase {
			l.endPhase(s.at)
			l.since = s.at
		}
		l.reported = now
		s.emit(Report{Lease: l.id, Waiting: now})
	}
	p.reportPositions = false
}

// progress returns the cause of the callers' wait. It describes the starting pod that is closest to readiness. If no
// pod is starting, the cause is the argument obstacle, or else that all pods are busy.
func (p *pool) progress(obstacle string) Waiting {
	var lead *pod
	for _, pod := range p.pods {
		if (pod.state == creating || pod.state == starting) && (lead == nil || pod.phase() > lead.phase()) {
			lead = pod
		}
	}
	if lead == nil {
		busy := fmt.Sprintf("all %d pods of the function are busy", p.countUsable())
		return Waiting{Phase: PhaseQueued, Reason: cmp.Or(obstacle, busy)}
	}
	reason := cmp.Or(lead.observed.Reason, "making pod "+lead.name+" ready")
	if lead.state == creating && p.failure.problem.Kind == Held {
		reason = p.failure.problem.Reason // this attempt may wait for the same reason as the last
	}
	return Waiting{Phase: lead.phase(), Reason: reason, Pod: lead.name}
}

const (
	// maxOutOfMemoryPods is the number of out-of-memory pods after which an evaluation is rejected. A single pod is not
	// enough, because another evaluation in this pod may have used the memory.
	maxOutOfMemoryPods = 2
	// verdictTimeout is the maximum wait for the kubelet's report on the causes of earlier pod failures. The report
	// usually arrives within a second. However, the health check of a failed pod alone may last for this timeout.
	verdictTimeout = 2 * checkTimeout
)

// memoryVerdict states if all earlier pods of an evaluation ran out of memory.
type memoryVerdict int

const (
	notOutOfMemory memoryVerdict = iota // at least one pod failed for another or unknown reason
	pending                             // the kubelet may still report the causes
	outOfMemory
)

// memoryVerdictOf returns outOfMemory if several pods failed during an evaluation, all for lack of memory. It returns
// pending while the kubelet's report is missing, because a caller notices a failure earlier than the kubelet.
func (t *leaseTable) memoryVerdictOf(now time.Time, l *lease) memoryVerdict {
	if len(l.avoid) < maxOutOfMemoryPods {
		return notOutOfMemory
	}
	found := outOfMemory
	for _, name := range l.avoid {
		pod := t.pods[name]
		_, ranOutOfMemory := t.outOfMemory[name]
		switch {
		case ranOutOfMemory:
		case pod != nil && pod.awaitsExplanation() && now.Sub(l.requested.at) < verdictTimeout:
			found = pending
		default:
			return notOutOfMemory
		}
	}
	return found
}

// checkAvoided probes ready pods that a caller avoids because they failed during its earlier attempts. They still count
// as ready, because the new request often arrives before the caller and the kubelet have reported the failures.
func (t *leaseTable) checkAvoided(s *step, l *lease) {
	for _, name := range l.avoid {
		if pod := t.pods[name]; pod != nil && pod.state == ready {
			pod.check(s, true, whyChecked)
		}
	}
}

// rejectOutOfMemory rejects waiting evaluations that already exhausted the memory of several pods. A further pod
// would most likely run out of memory too, and interrupt the other evaluations in that pod.
func (t *leaseTable) rejectOutOfMemory(s *step, p *pool) {
	if len(t.outOfMemory) == 0 {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if t.memoryVerdictOf(s.at, l) != outOfMemory {
			continue
		}
		reason := fmt.Sprintf("out of memory: the kernel ended pods %s while they ran this evaluation: give the function a "+
			"larger memory limit, or make the package smaller", strings.Join(l.avoid, " and "))
		t.reject(s, l, Reject{Class: fault.Precondition, Reason: reason})
	}
}
