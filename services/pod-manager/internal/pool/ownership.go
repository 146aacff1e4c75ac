// SPDX-License-Identifier: Apache-2.0

package pool

import "slices"

// ownership is this replica's view of the owners of functions.
type ownership struct {
	of        func(Function) Owner
	replicas  int    // replicas that own functions
	lost      string // reason why this replica can neither own functions nor create pods, else empty
	takeovers int64  // adopted pools with pods
}

// ownAll is the owner of all functions without membership.
func ownAll(Function) Owner { return Owner{Mine: true, Alone: true} }

func (e OwnersChanged) applyTo(m *Machine) {
	o := &m.ownership
	o.of, o.replicas, o.lost = e.Owner, max(e.Replicas, 1), e.Lost
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

// adoptPods starts to own a pool.
func (p *pool) adoptPods(s *step) {
	for _, pod := range p.pods {
		p.followObservation(s, pod, pod.observed)
		if pod.state == ready && pod.observed.Address != "" {
			pod.probe(s, 0) // it serves until it is found silent
		}
	}
	p.failure.reset() // the former owner's attempts are unknown
}

// handOver gives a pool to another owner, which makes new decisions about its pods. Leases on its pods continue.
func (p *pool) handOver(s *step) {
	for _, pod := range p.pods {
		pod.returnToStarting(s)
		pod.endProbe(s)
		pod.trustReadiness(s)
	}
}

// isManaged reports whether this replica makes pods of the pool ready: it owns the pool, or leases wait here.
func (p *pool) isManaged() bool { return p.owner.Mine || len(p.queue) > 0 }

// mayCreate reports whether this replica may create pods of a pool.
func (m *Machine) mayCreate(p *pool) bool { return p.isManaged() && m.incapacity(p) == "" }

// incapacity returns the reason why this replica cannot serve a pool. It is empty if it can. A disconnected replica
// continues to create pods if it is still the owner, because then all replicas stood down.
func (m *Machine) incapacity(p *pool) string {
	if m.ownership.lost != "" {
		return m.ownership.lost
	}
	if m.config.InProcess || p.owner.Mine && !p.owner.Alone {
		return ""
	}
	return m.connectivity.lost
}

// trustReadiness applies Kubernetes' report about a pod of another owner: this replica does not probe the pod, but can
// grant leases on it when its owner is silent.
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

// probeForOwner probes the starting pods of another owner while leases wait for them here.
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

// redirectWaiting sends the waiting leases of a pool to its owner, or to any replica if this replica cannot serve
// them. Leases whose callers could not reach the owner wait here.
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

// scanOwned collects the pods of the pools that this replica owns.
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

// Outdated counts the outdated pods that serve until new pods are ready, in the pools that this replica owns. Unused
// pods expire, and do not count.
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

// Takeovers counts the adopted pools with pods.
func (m *Machine) Takeovers() int64 { return m.ownership.takeovers }
