// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// adoptionGrace is how long a replica owns a function before it deletes one of its pods:
// longer than two replicas may take to learn of each other.
const adoptionGrace = 6 * time.Second

// owners is which replica owns which function, as this one knows it.
type owners struct {
	of       func(Function) Owner
	replicas int    // that own functions
	lost     string // why this replica can neither own functions nor create pods
	joined   bool   // this replica knows of a membership
	// since is when this replica last became one of them, while others were; zero if it was alone.
	since time.Time
}

// alone is a replica that knows of no other: it owns all functions.
func alone(Function) Owner { return Owner{Mine: true, Alone: true} }

func (e OwnersChanged) apply(m *Machine) {
	since, joins := m.owners.since, !m.owners.joined || m.owners.lost != ""
	if joins {
		since = time.Time{}
		if e.Replicas > 1 {
			since = m.step.at
		}
	}
	m.owners = owners{of: e.Owner, replicas: max(e.Replicas, 1), lost: e.Lost, joined: true, since: since}
	m.capacity.replicas = m.owners.replicas
	m.capacity.change()
	for _, p := range m.pools {
		former := p.owner
		p.owner = m.owners.of(p.function)
		switch {
		case p.owner.Mine && !former.Mine:
			p.adopt(&m.step)
			m.takeovers += int64(min(len(p.pods), 1))
		case former.Mine && !p.owner.Mine:
			p.handOver(&m.step)
		case p.owner.Mine && joins:
			p.ownedSince = since
		}
		m.step.mark(p)
	}
}

// adopt begins to own a pool. What this replica decided about its pods before counts no more.
func (p *pool) adopt(s *step) {
	p.ownedSince = s.at
	for _, pod := range p.pods {
		if !pod.state.usable() && !pod.seen.Deleting {
			pod.setState(s.at, starting, "")
			pod.since, pod.removal = s.at, removal{}
		}
		p.follow(s, pod, pod.seen)
		if pod.state == ready && pod.seen.Address != "" {
			pod.probe(s, 0) // it serves on as Kubernetes reports it, until it is found silent
		}
	}
	p.failure.reset() // the former owner's attempts are not known
}

// handOver gives a pool to another owner. Leases on its pods go on.
func (p *pool) handOver(s *step) {
	for _, pod := range p.pods {
		if pod.state == draining && !pod.removal.unsound {
			pod.setState(s.at, starting, "")
			pod.since, pod.removal = s.at, removal{}
		}
		pod.forget(s)
		pod.trustReadiness(s)
	}
}

// tends reports whether this replica makes pods of the pool ready: it owns the pool, or leases
// wait here.
func (p *pool) tends() bool { return p.owner.Mine || len(p.queue) > 0 }

// deletes reports whether this replica may delete pods of the pool now.
func (p *pool) deletes(now time.Time) bool {
	return p.owner.Mine && now.Sub(p.ownedSince) >= adoptionGrace
}

// trustReadiness takes Kubernetes' word for a pod that another replica owns: this replica does not
// probe it, but can grant leases on it when its owner is silent.
func (p *pod) trustReadiness(s *step) {
	switch {
	case p.pool.owner.Mine:
	case p.state == starting && p.seen.Ready && p.seen.Address != "" && p.health.asked == "":
		if p.becameReady.at.IsZero() {
			p.becameReady = s.moment
		}
		p.setState(s.at, ready, "")
	case p.state == ready && !p.seen.Ready && p.health.reported:
		p.setState(s.at, starting, "")
	}
}

// forget ends an open probe of a pod.
func (p *pod) forget(s *step) {
	if p.health.asked != "" {
		p.health.asked, p.health.doubted = "", time.Time{}
		s.emit(Unprobe{Name: p.name, UID: p.uid})
	}
}

// turnAway sends the waiting leases of a pool that another replica owns to that one. A lease
// whose caller could not reach the owner waits here, if this replica can create pods.
func (m *Machine) turnAway(s *step, p *pool) {
	if m.owners.lost == "" && m.reach.lost == "" && p.owner.Mine {
		return
	}
	for i := 0; i < len(p.queue); {
		l := p.queue[i]
		lost := m.owners.lost
		if lost == "" {
			lost = m.reach.lost
		}
		switch {
		case p.elsewhere(l):
			m.leases.turnAway(s, l, p.owner.Address, "another pod-manager owns the function")
		case lost != "":
			m.leases.turnAway(s, l, "", "this pod-manager cannot manage function pods: "+lost)
		default:
			i++
		}
	}
}

// elsewhere reports whether another replica owns the pool, which the caller of a lease has not asked yet.
func (p *pool) elsewhere(l *lease) bool {
	return !p.owner.Mine && p.owner.Address != "" && !slices.Contains(l.tried, p.owner.Address)
}

// turnAway sends a lease to another replica: the one at an address, or any if that is empty.
func (ls *leases) turnAway(s *step, l *lease, owner, reason string) {
	ls.dequeue(l)
	delete(ls.known, l.id)
	s.emit(Reject{Lease: l.id, Class: fault.Unavailable, Reason: reason, Elsewhere: true, Owner: owner})
}
