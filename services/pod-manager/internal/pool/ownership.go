// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
)

// ownership contains the owners of functions, as the last OwnersChanged reported them.
type ownership struct {
	of        func(Function) Owner
	replicas  int    // replicas that own functions
	lost      string // see OwnersChanged.Lost
	takeovers int64  // number of pools with pods that this replica took over
}

// ownAll returns the owner of a function without membership: this replica owns all functions.
func ownAll(Function) Owner { return Owner{Mine: true, Alone: true} }

func (e OwnersChanged) applyTo(m *Machine) {
	o := &m.ownership
	o.of = e.Owner
	o.replicas = max(e.Replicas, 1)
	o.lost = e.Lost
	for _, p := range m.pools {
		former := p.owner
		p.owner = o.of(p.function)
		switch {
		case p.owner.Mine && !former.Mine:
			p.adoptPods(&m.step)
			o.takeovers += int64(min(len(p.pods), 1))
		case former.Mine && !p.owner.Mine:
			p.handOver(&m.step)
		}
		m.step.markDirty(p)
	}
}

// adoptPods takes over the pods of a pool when this replica becomes the pool's owner.
func (p *pool) adoptPods(s *step) {
	for _, pod := range p.pods {
		p.followObservation(s, pod, pod.observed)
		if pod.state == ready && pod.observed.Address != "" {
			pod.probe(s, 0) // the pod serves until it turns out to be silent
		}
	}
	p.failure.reset() // the former owner's attempts are unknown
}

// handOver releases the pods of a pool when another replica becomes the pool's owner. It cancels this replica's
// decisions about the pods, because the new owner decides. Leases on the pods continue.
func (p *pool) handOver(s *step) {
	for _, pod := range p.pods {
		pod.returnToStarting(s)
		pod.endProbe(s)
		pod.trustReadiness(s)
	}
}

// isManaged reports whether this replica creates and probes pods of the pool: it owns the pool, or leases wait for
// the pool here.
func (p *pool) isManaged() bool { return p.owner.Mine || len(p.queue) > 0 }

// mayCreate reports whether this replica may create pods of a pool.
func (m *Machine) mayCreate(p *pool) bool { return p.isManaged() && m.incapacity(p) == "" }

// incapacity returns the reason that this replica cannot serve a pool. It is empty if the replica can. A
// disconnected replica can still serve a pool if it is the pool's owner with membership. In this case, all replicas
// stood down, so none is better.
func (m *Machine) incapacity(p *pool) string {
	if m.config.InProcess || (p.owner.Mine && !p.owner.Alone) {
		return ""
	}
	return cmp.Or(m.ownership.lost, m.connectivity.lost)
}

// trustReadiness copies the readiness that Kubernetes reports to the state of a pod that another replica owns. This
// replica does not probe such pods, but must be able to grant leases on them when their owner cannot be reached.
func (p *pod) trustReadiness(s *step) {
	switch {
	case p.pool.owner.Mine:
	case p.state == starting && p.observed.Ready && p.observed.Address != "" && p.health.probedAddress == "":
		if p.becameReady.at.IsZero() {
			p.becameReady = s.moment
		}
		p.setState(s.at, ready, "")
	case p.state == ready && !p.observed.Ready && p.health.reportedReady:
		p.setState(s.at, starting, "")
	}
}

// probeForOwner probes the starting pods of another owner's pool while leases wait for the pool here.
func (p *pool) probeForOwner(s *step) {
	if p.owner.Mine || len(p.queue) == 0 {
		return
	}
	for _, pod := range p.pods {
		if pod.state == starting && pod.observed.Address != "" {
			pod.probe(s, 0)
		}
	}
}

// redirectWaiting redirects the waiting leases of a pool to the pool's owner, or to any replica if this replica
// cannot serve the pool. Leases whose callers have already tried the owner wait here.
func (m *Machine) redirectWaiting(s *step, p *pool) {
	incapacity := m.incapacity(p)
	if incapacity == "" && p.owner.Mine {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		switch {
		case !p.owner.Mine && p.owner.Address != "" && !slices.Contains(l.tried, p.owner.Address):
			m.leases.redirectLease(s, l, p.owner.Address, "another pod-manager owns the function")
		case incapacity != "":
			m.leases.redirectLease(s, l, "", "this pod-manager cannot manage function pods: "+incapacity)
		}
	}
}

// scanOwned drains expired and surplus pods in the pools that this replica owns.
func (m *Machine) scanOwned(s *step) {
	for _, p := range m.pools {
		if p.owner.Mine {
			p.collectExpired(s)
			p.trimSurplus(s)
		}
	}
}

// Owned counts the functions that this replica owns.
func (m *Machine) Owned() int {
	n := 0
	for _, p := range m.pools {
		if p.owner.Mine {
			n++
		}
	}
	return n
}

// Outdated counts the outdated pods that will be replaced, in the pools that this replica owns. Outdated pods in
// unused pools do not count, because they expire without a replacement.
func (m *Machine) Outdated() int {
	n := 0
	for _, p := range m.pools {
		if p.owner.Mine && p.versionTarget() > 0 {
			_, _, outdated := p.countVersions(m.step.at)
			n += outdated
		}
	}
	return n
}

// Takeovers returns the number of pools with pods that this replica took over from other owners.
func (m *Machine) Takeovers() int64 { return m.ownership.takeovers }
