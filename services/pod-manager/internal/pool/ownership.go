// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
)

// ownership contains the owners of functions according to the last [OwnersChanged] event.
type ownership struct {
	of        func(Function) Owner
	replicas  int    // replicas that own functions
	lost      string // reason that this replica cannot use the Kubernetes API, or empty
	takeovers int64  // number of pools with pods that this replica took over
}

func (e OwnersChanged) applyTo(m *Machine, s *step) {
	o := &m.ownership
	o.of = e.Owner
	o.replicas = max(e.Replicas, 1)
	o.lost = e.Lost
	for _, p := range m.pools {
		former := p.owner
		p.owner = o.of(p.function)
		switch {
		case p.owner.Mine && !former.Mine:
			p.adoptPods(s)
			o.takeovers += int64(min(len(p.pods), 1))
		case former.Mine && !p.owner.Mine:
			p.handOver(s)
		}
		s.markDirty(p)
	}
}

// adoptPods starts to manage a pool's pods when this replica becomes the pool's owner.
func (p *pool) adoptPods(s *step) {
	for _, pod := range p.pods {
		p.followObservation(s, pod, pod.observed)
		if pod.state == ready && pod.observed.Address != "" {
			pod.probe(s, 0) // the pod keeps serving during this probe
		}
	}
	p.failure = failure{} // the former owner's failed attempts are unknown here
}

// handOver stops managing a pool's pods when another replica becomes the pool's owner. It cancels deletions and probes
// of the pods, because the new owner decides. Leases on the pods continue.
func (p *pool) handOver(s *step) {
	for _, pod := range p.pods {
		pod.returnToStarting(s)
		pod.endProbe(s)
		pod.trustReadiness(s)
	}
}

// isManaged reports whether this replica creates and probes pods of the pool. It does so if it owns the pool, or if
// callers wait here for a pod of the pool.
func (p *pool) isManaged() bool { return p.owner.Mine || len(p.queue) > 0 }

// incapacity returns the reason that this replica cannot serve a pool, or "" if it can. An example is a broken network.
// It is always "" if this replica is certainly the owner. A disconnected replica remains the owner only if all replicas
// are disconnected. No other replica could then serve the pool.
func (m *Machine) incapacity(p *pool) string {
	if m.config.InProcess || p.owner.isCertain() {
		return ""
	}
	return cmp.Or(m.ownership.lost, m.connectivity.lost)
}

// trustReadiness adopts the readiness that Kubernetes reports for a pod of another owner. The owner probes the pod, and
// this replica probes it only while leases wait here (see probeForOwner). This replica must nevertheless know the ready
// pods, because it grants leases on them if gateways cannot reach the owner.
func (p *pod) trustReadiness(s *step) {
	switch {
	case p.pool.owner.Mine:
	case p.state == starting && p.observed.Ready && p.observed.Address != "" && p.health.probedAddress == "":
		if p.becameReady.at.IsZero() {
			p.becameReady = s.moment
		}
		p.setState(s.at, ready, "")
	case p.state == ready && !p.observed.Ready:
		p.setState(s.at, starting, "")
	}
}

// probeForOwner probes starting pods of another owner while callers wait for them at this replica.
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

// redirectWaiting redirects waiting callers to the replica that owns the function, unless they already tried that
// replica. If this replica cannot serve the pool, it redirects the remaining callers to any replica.
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
