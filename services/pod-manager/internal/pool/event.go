// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Event is something that happened. Events may be late, repeated or lost. An observation with an older resource
// version is ignored.
type Event interface{ applyTo(m *Machine) }

// LeaseID identifies a lease. The owner of the machine never uses one twice.
type LeaseID uint64

// LeaseRequested asks for a lease. It is answered by one [Grant] or one [Reject], with any number of [Report] before,
// unless [LeaseEnded] comes first.
type LeaseRequested struct {
	Lease    LeaseID
	Function Function
	// Avoid are the names of pods that failed this caller before.
	Avoid []string
	// Tried are the addresses of replicas that the caller asked before.
	Tried []string
}

// LeaseEnded ends a lease, granted or waiting. It is ignored for one that is not known.
type LeaseEnded struct {
	Lease LeaseID
	// Broken is what was wrong with the pod; empty if nothing was.
	Broken string
	// Abandoned reports whether the caller left before the pod had answered.
	Abandoned bool
}

// PodObserved is a pod as Kubernetes shows it: after this machine created it, when it is found, and whenever it
// changes.
type PodObserved struct{ Observation }

// Observation is a pod as Kubernetes shows it.
type Observation struct {
	Name, UID, ResourceVersion string
	Function                   Function
	Slot                       int
	// ByTag reports whether the pod names its image by tag alone: the node may run another one than Function.
	ByTag bool
	// TemplateVersion and SettingsVersion are empty if the pod does not have them.
	TemplateVersion, SettingsVersion string
	// Identity is how the pod proves who it is; zero if it does not.
	Identity Identity
	Created  time.Time
	// ReclaimAfter is the pod's expiry; zero if it has none, or an unreadable one.
	ReclaimAfter time.Time

	// Phase is the step on the way to readiness. PhaseConnecting means that the pod's containers run.
	Phase Phase
	// Reason is more about the phase, for users.
	Reason string
	// Address is where the wrapper server will listen, as host:port; empty while the pod has none.
	Address string
	// HealthAddress is where its health is asked for; empty for Address.
	HealthAddress string
	Node          string
	// Ready reports whether Kubernetes finds that the pod serves.
	Ready bool
	// Deleting reports whether Kubernetes is deleting the pod.
	Deleting bool
	// Problem is what keeps the pod from serving.
	Problem Problem
}

// Identity is how a pod proves who it is: with a secret that it shares with its callers. The zero Identity is that of
// a pod without a certificate.
type Identity struct{ ID, Secret string }

// containersRun reports whether the containers of a pod run.
func (o Observation) containersRun() bool { return o.Phase == PhaseConnecting && o.Address != "" }

// Phase is a step on the way to a lease. Later steps are greater.
type Phase = podmanagerv1.Phase

// The phases, in their order.
const (
	PhaseUnknown    = podmanagerv1.Phase_PHASE_UNSPECIFIED
	PhaseQueued     = podmanagerv1.Phase_PHASE_QUEUED     // all pods are busy, and no further one is allowed
	PhaseResolving  = podmanagerv1.Phase_PHASE_RESOLVING  // the image is being looked up
	PhaseCreating   = podmanagerv1.Phase_PHASE_CREATING   // the pod is being created
	PhaseScheduling = podmanagerv1.Phase_PHASE_SCHEDULING // the pod has no node yet
	PhasePulling    = podmanagerv1.Phase_PHASE_PULLING    // the node pulls images
	PhaseStarting   = podmanagerv1.Phase_PHASE_STARTING   // containers start
	PhaseConnecting = podmanagerv1.Phase_PHASE_CONNECTING // the wrapper server's health is probed
)

// Problem is what keeps a pod from serving.
type Problem struct {
	Kind ProblemKind
	// Reason is the kubelet's or scheduler's own words.
	Reason string
	// OutOfMemory reports whether the kernel killed the pod for memory.
	OutOfMemory bool
	// Unreachable reports whether this replica had no answer from the Kubernetes API, which another replica may reach.
	Unreachable bool
}

// ProblemKind is what a problem means for waiting leases.
type ProblemKind int

const (
	// None is no problem.
	None ProblemKind = iota
	// Stuck is a pod that may become ready by itself, such as one that fits on no node now.
	Stuck
	// Held is a pod that becomes ready by itself too, as soon as the Kubernetes API recovers: nothing has to be changed.
	Held
	// Lost is a pod that ended for reasons of its own, such as an eviction: another one may well succeed.
	Lost
	// Full is a pod that a quota of the Kubernetes API refuses: it can be created once another pod is gone.
	Full
	// Fatal is a pod that cannot become ready, and neither can another one like it, such as one whose image cannot be
	// pulled.
	Fatal
)

// mayPass reports whether the pod may become ready by itself.
func (k ProblemKind) mayPass() bool { return k == Stuck || k == Held }

// broken reports whether it will not.
func (k ProblemKind) broken() bool { return k == Lost || k == Fatal }

// ForeignObserved is a pod of another function runner, which has an id like ours: a Service of that name leads to it.
type ForeignObserved struct{ Name, ID string }

// PodGone is a pod that does not exist any more, of this function runner or another.
type PodGone struct{ Name, UID string }

// CreateFailed is a pod that could not be created. It may exist all the same.
type CreateFailed struct {
	Name    string
	Problem Problem
}

// DeleteFailed is a pod that could not be deleted, for instance because it changed after that was decided.
type DeleteFailed struct{ Name, UID, Reason string }

// Probed is the answer of a pod's wrapper server to [Probe].
type Probed struct {
	Name, UID string
	// Question is the Probe's. Answers to earlier ones come too late.
	Question uint64
	// Unhealthy is why it does not serve; empty if it does.
	Unhealthy string
}

// Unanswered is a probe without a [Probe.Timeout] that a pod has not answered yet, although it had the time for it.
// The probe stays open.
type Unanswered struct {
	Name, UID string
	Question  uint64
}

// OwnersChanged is a change of which replica owns which function. Before the first one, this replica owns all.
type OwnersChanged struct {
	// Owner returns the owner of a function. It must be pure.
	Owner func(Function) Owner
	// Replicas is how many replicas own functions.
	Replicas int
	// Lost is why this replica can neither own functions nor create pods; empty if it can.
	Lost string
}

// MinPodsSet has the pool of a function keep at least Pods pods, whether or not a lease needs them, until another
// event changes that. Pods beyond the limit of the pool, or of all pools, are not created for it.
type MinPodsSet struct {
	Function Function
	Pods     int
}

// Configured replaces the configuration.
type Configured struct{ Config Config }

// Tick is a second that has passed.
type Tick struct{}

// Owner is which replica decides about a function's pods.
type Owner struct {
	// Mine reports whether this replica does.
	Mine bool
	// Address is where gateways reach the owner, if it is another replica; empty if that is not known.
	Address string
	// Alone reports whether this replica has no membership: others may own the function too.
	Alone bool
}
