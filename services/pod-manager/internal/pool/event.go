// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Event is an input of the [Machine], such as a request for a lease. Events may be late, repeated or lost. The
// Machine ignores outdated observations of pods.
type Event interface{ applyTo(m *Machine, s *step) }

// LeaseID identifies a lease. Callers must use each LeaseID only once.
type LeaseID uint64

// LeaseRequested requests a lease on a pod. The pool answers with any number of [Report] actions, followed by a single
// [Grant] or [Reject]. A [LeaseEnded] before the Grant or Reject cancels the request.
type LeaseRequested struct {
	Lease    LeaseID
	Function Function
	// Avoid contains the names of pods that failed during the caller's earlier attempts.
	Avoid []string
	// Tried contains the addresses of replicas that the caller already called for this lease.
	Tried []string
}

// LeaseEnded ends a granted lease, or cancels a waiting lease. The Machine ignores it if the lease is unknown.
type LeaseEnded struct {
	Lease LeaseID
	// Broken is the caller's description of the pod's failure. It is empty if the caller found no failure.
	Broken string
	// Abandoned is true if the caller stopped waiting before the pod answered.
	Abandoned bool
}

// PodObserved reports the state of a pod in Kubernetes. It is sent after each change.
type PodObserved struct{ Observation }

// Observation is the state of a pod in Kubernetes.
type Observation struct {
	Name, UID, ResourceVersion string
	Function                   Function
	Slot                       int
	// ByTag is true if the pod's image is specified by a tag without a digest. The tag may have moved since then, so the
	// node may run an image with another digest than Function.Digest.
	ByTag bool
	// TemplateVersion and SettingsVersion are the versions of the template and settings from which the pod was built. They
	// are empty if the pod lacks these annotations.
	TemplateVersion, SettingsVersion string
	// Identity is the identity that the pod proves to its callers. It is zero for a pod without a certificate.
	Identity Identity
	Created  time.Time
	// ReclaimAfter is the time after which the pod is deleted if unused. It is zero if the pod has no valid annotation.
	ReclaimAfter time.Time

	// Phase is the pod's progress towards readiness, such as the pull of its image. PhaseConnecting means that the
	// pod's containers run.
	Phase Phase
	// Reason explains the phase to users.
	Reason string
	// Address is the address of the pod's wrapper server, as host:port. It is empty while the pod has no address.
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

// Phase is a step in a caller's wait for a pod, such as the pull of the image. Later steps have greater values.
type Phase = podmanagerv1.Phase

// The phases of a wait, in order.
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
	// Reason is the message of the kubelet, the scheduler or the API server.
	Reason string
	// OutOfMemory is true if the kernel killed the pod because of its memory use.
	OutOfMemory bool
	// Unreachable is true if this replica cannot use the Kubernetes API, but another replica may be able to.
	Unreachable bool
}

// ProblemKind classifies problems of pods by their consequences for waiting callers.
type ProblemKind int

const (
	// None means that there is no problem.
	None ProblemKind = iota
	// Stuck means that the pod may still become ready, but a user may have to act, for instance if an image pull fails.
	Stuck
	// Held means that a temporary problem delays the pod. The pod becomes ready without action by a user, for instance
	// when a node is free or the Kubernetes API recovers.
	Held
	// Lost means that this pod will not serve, for instance after an eviction. A new pod may serve.
	Lost
	// Full means that a ResourceQuota refuses the pod. The pod can be created after another pod is deleted.
	Full
	// Fatal means that neither this pod nor a new pod can become ready, for instance because the image cannot be pulled.
	Fatal
)

// mayPass reports whether the problem may pass without a replacement of the pod.
func (k ProblemKind) mayPass() bool { return k == Stuck || k == Held }

// broken reports whether the problem prevents the pod from ever becoming ready.
func (k ProblemKind) broken() bool { return k == Lost || k == Fatal }

// ForeignObserved reports a pod of another function runner. New pods must not use its id, because a Service with this
// id would also select the foreign pod.
type ForeignObserved struct{ Name, ID string }

// PodGone reports that a pod no longer exists. The pod may have belonged to another function runner.
type PodGone struct{ Name, UID string }

// CreateFailed reports that the action [Create] failed. The pod may exist, for instance if a response was lost.
type CreateFailed struct {
	Name    string
	Problem Problem
}

// DeleteFailed reports that the action [Delete] failed.
type DeleteFailed struct{ Name, UID string }

// Probed reports the result of a [Probe].
type Probed struct {
	Name, UID string
	// Question is the number of the [Probe]. Results of earlier probes are ignored.
	Question uint64
	// Unhealthy is the error of a failed probe. It is empty if the pod is healthy.
	Unhealthy string
}

// Unanswered reports that a pod has not answered a [Probe] for 2 s. The probe continues. Probes with a timeout do not
// send this event.
type Unanswered struct {
	Name, UID string
	Question  uint64
}

// OwnersChanged reports the owners of all functions. Before the first event, this replica owns all functions.
type OwnersChanged struct {
	// Owner returns the owner of a function. It must be a pure function.
	Owner func(Function) Owner
	// Replicas is the number of replicas that share the functions.
	Replicas int
	// Lost is the reason that this replica cannot use the Kubernetes API. It is empty if this replica can use the API. It
	// is also empty if the API is unavailable to all replicas.
	Lost string
}

// MinPodsSet sets the minimum number of pods of a function. These pods exist even if no lease needs them. If the
// minimum exceeds MaxPods, MaxPods applies.
type MinPodsSet struct {
	Function Function
	Pods     int
}

// Configured replaces the configuration.
type Configured struct{ Config Config }

// Tick reports that a second has passed.
type Tick struct{}

// Owner identifies the replica that owns a function, and so manages its pods.
type Owner struct {
	// Mine is true if this replica is the owner.
	Mine bool
	// Address is the address where gateways reach an owner other than this replica. It is empty if unknown.
	Address string
	// Alone is true if the replicas do not coordinate. Each replica then considers itself the owner.
	Alone bool
}

// isCertain reports whether this replica is the owner and no peer may be too. This requires coordinating replicas.
func (o Owner) isCertain() bool { return o.Mine && !o.Alone }
