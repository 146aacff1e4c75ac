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

// lease is a lease that waits, or that a pod holds.
type lease struct {
	id        LeaseID
	pool      *pool
	pod       *pod // nil while it waits
	avoid     []string
	tried     []string // replicas that its caller asked before
	requested moment
	granted   time.Time

	reported Waiting // the last report
	since    time.Time
	phases   []PhaseDuration
}

// avoidsPod reports whether a pod failed the lease's caller before.
func (l *lease) avoidsPod(p *pod) bool { return slices.Contains(l.avoid, p.name) }

// enterPhase begins the next phase of a lease.
func (l *lease) enterPhase(phase Phase, now time.Time) {
	if phase == l.reported.Phase {
		return
	}
	l.endPhase(now)
	l.since = now
}

// endPhase adds up the phase that a lease is in.
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

// leases are the leases of all pools.
type leaseTable struct {
	known   map[LeaseID]*lease // waiting and granted
	granted uint64             // in all
	// outOfMemory are the names of pods that ran out of memory, with when.
	outOfMemory map[string]time.Time
	pods        map[string]*pod // all of them, by name
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

// isWaiting reports whether a lease has no answer yet.
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

// grantWaiting grants waiting leases, first come first served. A lease with a pending verdict does not block leases behind
// it.
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

// choosePod returns the pod for a lease; nil if none has capacity.
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

// isBetter reports whether a is a better choice than b: the least loaded pod, the least recently used one among equals,
// and a pod to be avoided only if there is no other.
func isBetter(a, b *pod, l *lease) bool {
	if avoidA, avoidB := l.avoidsPod(a), l.avoidsPod(b); avoidA != avoidB {
		return avoidB
	}
	if a.use.leases != b.use.leases {
		return a.use.leases < b.use.leases
	}
	return a.use.lastGrant < b.use.lastGrant
}

// terminalProblem returns why no pod of p will serve its waiting leases, and when to retry; the zero Problem if a pod
// may, or is going to be created.
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

// redirectLease sends a lease to another replica: the one at an address, or any if that is empty.
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

// reportWaiting reports what waiting leases wait for; full is the reason if there is no capacity for a further pod.
// Positions alone are reported with the next tick only: they change with each grant, for all.
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

// progress is what the waiting leases of p wait for: the most advanced pod that is not ready yet, or a free one.
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
	// maxOutOfMemoryPods pods lost to memory end an evaluation; a single loss may be another evaluation's fault.
	maxOutOfMemoryPods = 2
	// verdictTimeout is how long a lease waits for the kubelet to report why its caller's pods broke: for as long as it
	// may take to check one. The kubelet takes a second.
	verdictTimeout = 2 * checkTimeout
)

// memoryVerdict is whether the pods that a lease's caller lost all ran out of memory.
type memoryVerdict int

const (
	notOutOfMemory memoryVerdict = iota // they did not, or that will never be known
	pending                             // the kubelet has not reported on all of them, and still may
	outOfMemory
)

// distinctNames returns each name once: a pod that broke twice is one pod.
func distinctNames(names []string) []string {
	var first []string
	for _, name := range names {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// memoryVerdictOf returns whether the pods that a lease's caller lost ran out of memory. A caller learns of the end
// of a pod before the kubelet reports why.
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

// checkAvoided checks the pods that failed a lease's caller and still count as ready: a request is often faster than the
// end of the caller's last lease, and than the kubelet's report.
func (t *leaseTable) checkAvoided(s *step, l *lease) {
	for _, name := range l.avoid {
		if pod := t.pods[name]; pod != nil && pod.state == ready {
			pod.check(s, true, whyChecked)
		}
	}
}

// rejectOutOfMemory rejects leases whose callers' pods all ran out of memory. A further pod most likely would too,
// and take along what others run on it.
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
