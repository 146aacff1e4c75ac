package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// lease is a lease that waits or has a place.
type lease struct {
	id        LeaseID
	pool      *pool
	pod       *pod // nil while it waits
	avoid     []string
	requested time.Time
	event     uint64 // by which it was

	told   Waiting // the last report
	since  time.Time
	phases []PhaseDuration
}

// avoids says whether a pod failed the lease's caller before.
func (l *lease) avoids(p *pod) bool { return slices.Contains(l.avoid, p.name) }

// enter begins the next phase of a lease.
func (l *lease) enter(phase podmanagerv1.Phase, now time.Time) {
	if phase == l.told.Phase {
		return
	}
	l.leave(now)
	l.since = now
}

// leave ends the phase that a lease is in.
func (l *lease) leave(now time.Time) {
	if l.told.Phase == podmanagerv1.Phase_PHASE_UNSPECIFIED {
		return
	}
	spent := now.Sub(l.since)
	if i := slices.IndexFunc(l.phases, func(p PhaseDuration) bool { return p.Phase == l.told.Phase }); i >= 0 {
		l.phases[i].Duration += spent
		return
	}
	l.phases = append(l.phases, PhaseDuration{Phase: l.told.Phase, Duration: spent})
}

func (e LeaseRequested) apply(m *Machine) {
	p := m.pool(e.Function)
	m.touch(p)
	l := &lease{id: e.Lease, pool: p, avoid: distinct(e.Avoid), requested: m.now, event: m.events}
	m.replaceOldPods(p)
	m.leases[l.id] = l
	p.queue = append(p.queue, l)
	m.waiting++
	m.inquire(l)
	m.refuseStarved(p)
	m.grant(p) // those with a place at once never fill the queue
	if !slices.Contains(p.queue, l) {
		return // it has its answer
	}
	switch {
	case len(p.queue) > p.limits.MaxQueue:
		m.reject(l, fault.Exhausted, fmt.Sprintf("%d evaluations wait for %s already, which is the limit", p.limits.MaxQueue, p.function.Reference), time.Second)
	case m.waiting > m.config.MaxWaiting:
		m.reject(m.expendable(p), fault.Exhausted, fmt.Sprintf("%d evaluations wait for function pods already, which is the limit", m.config.MaxWaiting), time.Second)
	}
}

// expendable returns the lease that gives way if too many wait in all queues: the
// last one in the longest queue, that of p among equals. A crowd of callers of one
// function does not keep those of others from waiting.
func (m *Machine) expendable(p *pool) *lease {
	longest := p
	for _, other := range m.pools {
		if len(other.queue) > len(longest.queue) {
			longest = other
		}
	}
	m.touch(longest)
	return longest.queue[len(longest.queue)-1]
}

func (e LeaseEnded) apply(m *Machine) {
	l, ok := m.leases[e.Lease]
	if !ok {
		return
	}
	delete(m.leases, l.id)
	m.touch(l.pool)
	if l.pod == nil {
		m.unqueue(l)
		return
	}
	l.pod.active--
	m.keep(l.pod) // nothing is asked for about a pod that goes
	if e.Broken == "" {
		l.pod.strikes = 0
		return
	}
	m.doubt(l.pod, e.Broken)
}

// unqueue takes a lease out of its queue.
func (m *Machine) unqueue(l *lease) {
	if i := slices.Index(l.pool.queue, l); i >= 0 {
		l.pool.queue = slices.Delete(l.pool.queue, i, i+1)
		m.waiting--
	}
}

// reject answers a waiting lease with an error.
func (m *Machine) reject(l *lease, class fault.Class, reason string, retryAfter time.Duration) {
	m.unqueue(l)
	delete(m.leases, l.id)
	reason = cmp.Or(reason, "there is no pod for the function, and Kubernetes does not say why")
	m.act(Reject{Lease: l.id, Class: class, Reason: reason, RetryAfter: retryAfter})
}

// grant gives places to those who wait, first come first served. Nobody waits behind
// one about whose pods the verdict is awaited.
func (m *Machine) grant(p *pool) {
	for i := 0; i < len(p.queue); {
		l := p.queue[i]
		if m.verdict(l) == awaited {
			i++
			continue
		}
		chosen := p.choose(l)
		if chosen == nil {
			return
		}
		if l.avoids(chosen) && chosen.healthyEvent < l.event {
			m.suspect(chosen)
			continue
		}
		m.unqueue(l)
		l.leave(m.now)
		l.pod = chosen
		m.turns++
		chosen.turn = m.turns
		chosen.active++
		chosen.leasesTotal++
		p.leasesTotal++
		cold := chosen.readyEvent > l.event && !chosen.foundRunning
		if cold {
			p.coldStartsTotal++
		}
		m.keep(chosen)
		m.act(Grant{
			Lease: l.id, Function: p.function, Pod: chosen.name, UID: chosen.uid, Address: chosen.seen.Address,
			Cold: cold, Phases: l.phases,
		})
	}
}

// refuse answers those for whom there will be no pod.
func (m *Machine) refuse(p *pool) {
	if len(p.queue) == 0 || p.hopeful() {
		return
	}
	problem, retryAfter := Problem{}, time.Duration(0)
	if stuck := p.stuckPod(); stuck != nil {
		problem = stuck.seen.Problem
	} else if p.failure.until.After(m.now) {
		problem, retryAfter = p.failure.problem, p.failure.until.Sub(m.now)
	}
	if problem.Kind == None {
		m.refuseStranded(p) // a pod is going to be created once there is room
		return
	}
	for len(p.queue) > 0 {
		m.reject(p.queue[0], problem.Kind.class(), problem.Reason, retryAfter)
	}
	m.unblock(p)
}

// report tells those who wait what they wait for. Their positions alone are reported
// with the next tick only: they change with each grant, for everybody.
func (m *Machine) report(p *pool) {
	if len(p.queue) == 0 {
		return
	}
	outlook := p.outlook()
	if outlook.Reason == "" {
		outlook.Reason = m.queueReason(p)
	}
	for i, l := range p.queue {
		now := outlook
		if m.verdict(l) == awaited {
			now = Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED, Reason: "finding out why pods " + strings.Join(l.avoid, " and ") + " broke"}
		}
		now.Position = i + 1
		last := l.told
		if !p.repeatReports {
			last.Position = now.Position
		}
		if now == last {
			continue
		}
		l.enter(now.Phase, m.now)
		l.told = now
		m.act(Report{Lease: l.id, Waiting: now})
	}
	p.repeatReports = false
}

// outlook is what those who wait for a pod of p wait for.
func (p *pool) outlook() Waiting {
	lead := p.leading()
	if lead == nil {
		return Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED}
	}
	reason := lead.seen.Reason
	if reason == "" {
		reason = "making pod " + lead.name + " ready"
	}
	return Waiting{Phase: lead.phase(), Reason: reason, Pod: lead.name}
}

// queueReason is why those who wait do not get a pod of their own.
func (m *Machine) queueReason(p *pool) string {
	if slices.Contains(m.blocked, p) {
		return fmt.Sprintf("there are %d function pods, which is the limit, and all are in use", m.config.MaxPods)
	}
	return fmt.Sprintf("all %d pods of the function are busy", p.usable())
}
