// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"time"
)

// Status is a pool as it is now.
type Status struct {
	Function Function
	// Template is the version of the pod template for new pods.
	Template string
	Limits   Limits
	// Waiting and Active count leases.
	Waiting, Active int
	Pods            []PodStatus
	// LastFailure is why the last attempt to have a pod failed; empty if it did not.
	LastFailure     string
	LastFailureTime time.Time

	LeasesTotal, ColdStartsTotal int64
}

// PodStatus is a pod as it is now.
type PodStatus struct {
	Name, UID, Address, Node, TemplateVersion string
	Slot                                      int
	State                                     PodState
	// Phase is the step on the way to readiness of a pod that starts.
	Phase Phase
	// Reason is more about the state, for users.
	Reason  string
	Adopted bool
	// Outdated is true if the pod is of another version than new ones. It serves until a new one is ready.
	Outdated    bool
	Active      int // leases
	LeasesTotal int64
	// Created is by Kubernetes' clock. Ready is zero until the pod was ready once.
	Created, Ready, ReclaimAfter time.Time
}

// PodState is the state of a pod as others see it.
type PodState int

// The states.
const (
	Starting PodState = iota // on its way to readiness, or checked
	Ready                    // takes leases
	Draining                 // finishes its leases
	Failed                   // does not serve, and has leases
	Deleting                 // is being deleted
	podStates
)

// Functions returns the functions that have pools, in the order in which they came.
func (m *Machine) Functions() []Function {
	functions := make([]Function, 0, len(m.pools))
	for _, p := range m.pools {
		functions = append(functions, p.function)
	}
	return functions
}

// Waiting counts the leases that wait in all pools.
func (m *Machine) Waiting() int { return m.leases.waiting }

// CountPods calls count for each function and state with the number of such pods, if there are any.
func (m *Machine) CountPods(count func(f Function, s PodState, pods int)) {
	for _, p := range m.pools {
		for state, n := range p.counts {
			if n > 0 {
				count(p.function, PodState(state), n)
			}
		}
	}
}

// recount counts the pods of a pool by state. Each change of a pod marks its pool, and each reconciliation counts
// again.
func (p *pool) recount() {
	clear(p.counts[:])
	for _, pod := range p.pods {
		p.counts[pod.public()]++
	}
}

// Status returns the pool of a function, and whether there is one.
func (m *Machine) Status(f Function) (Status, bool) {
	p, ok := m.byFunction[f]
	if !ok {
		return Status{}, false
	}
	s := Status{
		Function: f, Template: m.config.Template, Limits: p.limits, Waiting: len(p.queue),
		LastFailure: p.failure.problem.Reason, LastFailureTime: p.failure.at,
		LeasesTotal: p.leasesTotal, ColdStartsTotal: p.coldStartsTotal,
	}
	for _, pod := range p.pods {
		s.Active += pod.use.leases
		s.Pods = append(s.Pods, pod.status(p.outdated(m.step.at, pod)))
	}
	return s, true
}

// status returns the pod as it is now.
func (p *pod) status(outdated bool) PodStatus {
	s := PodStatus{
		Name: p.name, UID: p.uid, Slot: p.slot, Address: p.seen.Address, Node: p.seen.Node,
		TemplateVersion: p.seen.TemplateVersion, Adopted: p.adopted, Outdated: outdated, State: p.public(), Reason: p.why,
		Active: p.use.leases, LeasesTotal: p.use.total,
		Created: p.created, Ready: p.becameReady.at, ReclaimAfter: p.expiry.at,
	}
	switch p.state {
	case ready:
		if outdated {
			s.Reason = "it is of another template or other settings, and serves until a new pod is ready"
		}
	case creating, starting:
		s.Reason = cmp.Or(p.seen.Problem.Reason, p.seen.Reason)
	default:
	}
	if s.State == Starting {
		s.Phase = p.phase()
	}
	return s
}

// public is the state of a pod as others see it.
func (p *pod) public() PodState {
	switch {
	case p.state == ready:
		return Ready
	case p.state == draining && p.removal.unsound:
		return Failed
	case p.state == draining:
		return Draining
	case p.state == deleting:
		return Deleting
	default:
		return Starting
	}
}
