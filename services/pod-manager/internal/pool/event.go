// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Event is an input of the [Machine]. Events may be late, repeated or lost. An observation of a pod with an older
// resource version is ignored.
type Event interface{ applyTo(m *Machine) }

// LeaseID identifies a lease. Callers must not reuse it.
type LeaseID uint64

// LeaseRequested requests a lease. The answer is any number of [Report] actions, followed by a single [Grant] or
// [Reject]. A [LeaseEnded] before that cancels the request.
type LeaseRequested struct {
	Lease    LeaseID
	Function Function
	// Avoid contains the names of pods that failed this caller before.
	Avoid []string
	// Tried contains the addresses of replicas that the caller called before.
	Tried []string
}

// LeaseEnded ends a granted or waiting lease. Unknown leases are ignored.
type LeaseEnded struct {
	Lease LeaseID
	// Broken describes the pod's failure, as the caller reports it. It is empty if the caller found no failure.
	Broken string
	// Abandoned is true if the caller gave up waiting before the pod answered.
	Abandoned bool
}

// PodObserved reports the state of a pod in Kubernetes. It is sent after each change.
type PodObserved struct{ Observation }

// Observation is the state of a pod in Kubernetes.
type Observation struct {
	Name, UID, ResourceVersion string
	Function                   Function
	Slot                       int
	// ByTag is true if the pod's image has a tag but no digest, so that the node may run another digest than
	// Function.Digest.
	ByTag bool
	// TemplateVersion and SettingsVersion are empty if the pod does not contain them.
	TemplateVersion, SettingsVersion string
	// Identity is the pod's identity for its callers. It is zero for a pod without a certificate.
	Identity Identity
	Created  time.Time
	// ReclaimAfter is the pod's expiry. It is zero if the annotation is missing or invalid.
	ReclaimAfter time.Time

	// Phase is the pod's progress towards readiness. PhaseConnecting means that the pod's containers run.
	Phase Phase
	// Reason explains the phase to users.
	Reason string
	// Address is the address of the wrapper server, as host:port. It is empty while the pod has no address.
	Address string
	// HealthAddress is the address to which probes are sent. If it is empty, probes are sent to Address.
	HealthAddress string
	Node          string
	// Ready is true if Kubernetes reports the pod as ready.
	Ready bool
	// Deleting is true if Kubernetes is deleting the pod.
	Deleting bool
	// Problem is the failure that prevents the pod from serving. It is zero for a healthy pod.
	Problem Problem
}

// Identity is the identity that a pod proves to its callers. Secret is known only to the pod and its callers. The
// zero Identity is for pods without a certificate.
type Identity struct{ ID, Secret string }

func (o Observation) containersRun() bool { return o.Phase == PhaseConnecting && o.Address != "" }

// Phase is the progress of a lease towards its grant. Later phases are greater.
type Phase = podmanagerv1.Phase

// The phases, in order.
const (
	PhaseUnknown    = podmanagerv1.Phase_PHASE_UNSPECIFIED
	PhaseQueued     = podmanagerv1.Phase_PHASE_QUEUED     // all pods are busy, and there is no capacity for a further pod
	PhaseResolving  = podmanagerv1.Phase_PHASE_RESOLVING  // the image is being looked up
	PhaseCreating   = podmanagerv1.Phase_PHASE_CREATING   // the pod is being created
	PhaseScheduling = podmanagerv1.Phase_PHASE_SCHEDULING // the pod has no node yet
	PhasePulling    = podmanagerv1.Phase_PHASE_PULLING    // the node pulls images
	PhaseStarting   = podmanagerv1.Phase_PHASE_STARTING   // containers start
	PhaseConnecting = podmanagerv1.Phase_PHASE_CONNECTING // the wrapper server's health is probed
)

// Problem describes a failure that prevents a pod from serving.
type Problem struct {
	Kind ProblemKind
	// Reason is the text of the kubelet, the scheduler or the API server.
	Reason string
	// OutOfMemory is true if the kernel killed the pod because of its memory use.
	OutOfMemory bool
	// Unreachable is true if this replica cannot use the Kubernetes API. Another replica may be able to.
	Unreachable bool
}

// ProblemKind classifies problems by their consequence for waiting leases.
type ProblemKind int

const (
	// None means that there is no problem.
	None ProblemKind = iota
	// Stuck means that the pod may become ready by itself, but a user may have to change something. An example is a
	// failing image pull.
	Stuck
	// Held means that the pod becomes ready by itself after a temporary cause, for instance once a node is free or
	// the Kubernetes API recovers.
	Held
	// Lost means that this pod will not serve, for instance after an eviction, but another pod may.
	Lost
	// Full means that a quota refuses the pod. The pod can be created once another pod is deleted.
	Full
	// Fatal means that neither this pod nor a new pod can become ready, for instance because the image cannot be
	// pulled.
	Fatal
)

// mayPass reports whether the pod may become ready by itself.
func (k ProblemKind) mayPass() bool { return k == Stuck || k == Held }

// broken reports whether the pod cannot become ready any longer.
func (k ProblemKind) broken() bool { return k == Lost || k == Fatal }

// ForeignObserved reports a pod of another function runner whose label contains an id in our format. A Service with
// this id would select that pod, so the id is occupied.
type ForeignObserved struct{ Name, ID string }

// PodGone reports that a pod no longer exists. The pod may belong to another function runner.
type PodGone struct{ Name, UID string }

// CreateFailed reports that a [Create] failed. The pod may exist nevertheless.
type CreateFailed struct {
	Name    string
	Problem Problem
}

// DeleteFailed reports that a [Delete] failed.
type DeleteFailed struct{ Name, UID, Reason string }

// Probed reports the result of a [Probe].
type Probed struct {
	Name, UID string
	// Question is the number of the Probe. Answers to earlier probes are ignored.
	Question uint64
	// Unhealthy is the error of the probe. It is empty for a healthy pod.
	Unhealthy string
}

// Unanswered reports that a pod has not answered a [Probe] without timeout for a while. The probe continues.
type Unanswered struct {
	Name, UID string
	Question  uint64
}

// OwnersChanged reports new owners of functions. Before the first OwnersChanged, this replica owns all functions.
type OwnersChanged struct {
	// Owner returns the owner of a function. It must be a pure function.
	Owner func(Function) Owner
	// Replicas is the number of replicas that own functions.
	Replicas int
	// Lost is the reason that this replica cannot use the Kubernetes API, while other replicas can. Otherwise it is
	// empty.
	Lost string
}

// MinPodsSet sets the minimum number of pods of a function. These pods exist even if no lease needs them. MaxPods
// limits the minimum.
type MinPodsSet struct {
	Function Function
	Pods     int
}

// Configured replaces the configuration.
type Configured struct{ Config Config }

// Tick reports that a second has passed.
type Tick struct{}

// Owner identifies the replica that manages a function's pods.
type Owner struct {
	// Mine is true if this replica is the owner.
	Mine bool
	// Address is the owner's address for gateways, if it is another replica. It is empty if the address is unknown.
	Address string
	// Alone is true if this replica runs without membership: other replicas may own the function, too.
	Alone bool
}
