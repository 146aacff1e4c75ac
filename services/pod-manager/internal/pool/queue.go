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

// avoids reports whether a pod failed the lease's caller before.
func (l *lease) avoids(p *pod) bool { return slices.Contains(l.avoid, p.name) }

// enter begins the next phase of a lease.
func (l *lease) enter(phase Phase, now time.Time) {
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
type leases struct {
	known   map[LeaseID]*lease // waiting and granted
	waiting int
	granted uint64 // in all
	// outOfMemory are the names of pods that ran out of memory, with when.
	outOfMemory map[string]time.Time
	pods        map[string]*pod // all of them, by name
}

// enqueue adds a waiting lease.
func (ls *leases) enqueue(l *lease) {
	ls.known[l.id] = l
	l.pool.queue = append(l.pool.queue, l)
	ls.waiting++
}

// dequeue removes a lease from its queue.
func (ls *leases) dequeue(l *lease) {
	if i := slices.Index(l.pool.queue, l); i >= 0 {
		l.pool.queue = slices.Delete(l.pool.queue, i, i+1)
		ls.waiting--
	}
}

// waits reports whether a lease has no answer yet.
func (ls *leases) waits(l *lease) bool { return slices.Contains(l.pool.queue, l) }

// reject answers a waiting lease with an error.
func (ls *leases) reject(s *step, l *lease, class fault.Class, reason string, retryAfter time.Duration) {
	ls.dequeue(l)
	delete(ls.known, l.id)
	reason = cmp.Or(reason, "there is no pod for the function, and Kubernetes does not say why")
	s.emit(Reject{Lease: l.id, Class: class, Reason: reason, RetryAfter: retryAfter})
}

// exhausted rejects a waiting lease because of a limit.
func (ls *leases) exhausted(s *step, l *lease, format string, args ...any) {
	ls.reject(s, l, fault.Exhausted, fmt.Sprintf(format, args...), time.Second)
}

// grant grants waiting leases, first come first served. A lease with a pending verdict does
// not block leases behind it.
func (ls *leases) grant(s *step, p *pool) {
	if len(p.queue) > 0 {
		p.checkDoubted(s)
	}
	for i := 0; i < len(p.queue); {
		l := p.queue[i]
		if ls.memoryVerdictOf(s.at, l) == pending {
			i++
			continue
		}
		chosen := choose(p, l, s.at)
		if chosen == nil {
			return
		}
		if l.avoids(chosen) && chosen.health.answered < l.requested.event {
			chosen.check(s, true) // requests are often faster than the ends of leases
			continue
		}
		ls.dequeue(l)
		ls.grantOn(s, chosen, l)
	}
}

// grantOn grants a lease on a pod.
func (ls *leases) grantOn(s *step, chosen *pod, l *lease) {
	l.endPhase(s.at)
	l.pod, l.granted = chosen, s.at
	ls.granted++
	chosen.use.turn = ls.granted
	chosen.use.leases++
	chosen.use.total++
	p := l.pool
	p.leasesTotal++
	cold := chosen.becameReady.event > l.requested.event && !chosen.foundRunning
	if cold {
		p.coldStartsTotal++
	}
	if chosen.state.usable() {
		chosen.extend(s)
	}
	s.emit(Grant{
		Lease: l.id, Function: p.function, Pod: chosen.name, UID: chosen.uid, Address: chosen.seen.Address,
		Identity: chosen.seen.Identity, ByTag: chosen.seen.ByTag, Cold: cold, Phases: l.phases,
	})
}

// choose returns the pod for a lease: the least loaded of those with capacity, the one used
// longest ago among equals, and one to be avoided, or a doubted one, only if there is no other; nil if
// there is none.
func choose(p *pool, l *lease, now time.Time) *pod {
	var best *pod
	for _, candidate := range p.pods {
		if candidate.state != ready || p.elsewhere(l) && candidate.expiry.ends(now) {
			continue
		}
		if candidate.use.leases < p.limits.MaxConcurrency && (best == nil || better(candidate, best, l)) {
			best = candidate
		}
	}
	return best
}

// better reports whether a is a better choice than b.
func better(a, b *pod, l *lease) bool {
	if avoidA, avoidB := l.avoids(a), l.avoids(b); avoidA != avoidB {
		return avoidB
	}
	if doubtA, doubtB := a.doubted(), b.doubted(); doubtA != doubtB {
		return doubtB
	}
	if a.use.leases != b.use.leases {
		return a.use.leases < b.use.leases
	}
	return a.use.turn < b.use.turn
}

// longest returns the pool with the longest queue, p among equals. A crowd of callers of
// one function does not keep those of others from waiting.
func longest(p *pool, pools []*pool) *pool {
	for _, other := range pools {
		if len(other.queue) > len(p.queue) {
			p = other
		}
	}
	return p
}

// hopeless returns why no pod of p will serve its waiting leases, and when to retry; the
// zero Problem if one may, or is going to be created.
func hopeless(now time.Time, p *pool) (Problem, time.Duration) {
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
		return stalled.seen.Problem, 0
	case p.failure.until.After(now):
		return p.failure.problem, p.failure.until.Sub(now)
	default:
		return Problem{}, 0
	}
}

// rejectAll rejects all waiting leases of a pool because of a problem.
func (ls *leases) rejectAll(s *step, p *pool, problem Problem, retryAfter time.Duration) {
	for len(p.queue) > 0 {
		if problem.Unreachable {
			ls.turnAway(s, p.queue[0], "", problem.Reason)
			continue
		}
		ls.reject(s, p.queue[0], problem.Kind.class(), problem.Reason, retryAfter)
	}
}

// report reports what waiting leases wait for; full is the reason if there is no capacity
// for a further pod. Positions alone are reported with the next tick only: they change with
// each grant, for all.
func (ls *leases) report(s *step, p *pool, full string) {
	if len(p.queue) == 0 {
		return
	}
	general := outlook(p, full)
	for i, l := range p.queue {
		now := general
		if ls.memoryVerdictOf(s.at, l) == pending {
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
		l.enter(now.Phase, s.at)
		l.reported = now
		s.emit(Report{Lease: l.id, Waiting: now})
	}
	p.reportPositions = false
}

// outlook is what leases that wait for a pod of p wait for: the most advanced pod that is
// not ready yet, or one that is free.
func outlook(p *pool, full string) Waiting {
	var lead *pod
	for _, pod := range p.pods {
		if (pod.state == creating || pod.state == starting) && (lead == nil || pod.phase() > lead.phase()) {
			lead = pod
		}
	}
	if lead == nil {
		busy := fmt.Sprintf("all %d pods of the function are busy", p.usable())
		return Waiting{Phase: PhaseQueued, Reason: cmp.Or(full, busy)}
	}
	reason := cmp.Or(lead.seen.Reason, "making pod "+lead.name+" ready")
	return Waiting{Phase: lead.phase(), Reason: reason, Pod: lead.name}
}
