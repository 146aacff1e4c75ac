package podspec

import corev1 "k8s.io/api/core/v1"

// Phase is the step that a pod is at on its way to readiness. Phases only go up.
type Phase int

const (
	// PhaseCreating is a pod that nobody has looked at yet.
	PhaseCreating Phase = iota
	// PhaseScheduling is a pod that has no node.
	PhaseScheduling
	// PhasePulling is a pod that its node prepares: volumes, network, images and
	// init containers. Kubernetes does not say which of them takes the time.
	PhasePulling
	// PhaseStarting is a pod whose function container was made, but does not run.
	PhaseStarting
	// PhaseRunning is a pod whose function container runs: its wrapper server may be
	// asked for its health.
	PhaseRunning
)

// PodStatus is how a pod is.
type PodStatus struct {
	Phase Phase
	// Reason says more about the phase, for people; it may be empty.
	Reason string
	// IP is the pod's address; empty while it has none.
	IP string
	// Node is the name of its node; empty while it has none.
	Node string
	// Deleting says that Kubernetes is ending the pod.
	Deleting bool
	// Failure is what keeps the pod from serving; nil if nothing does.
	Failure *Failure
}

// Failure is what keeps a pod from serving, in the words of kubelet and scheduler.
//
// Neither Permanent nor Ended means that the pod may yet become ready by itself, as
// one for which there is no room on any node now.
type Failure struct {
	// Reason is one word, such as "ErrImagePull".
	Reason string
	// Message is a text of one line; it may be empty.
	Message string
	// Permanent says that another pod like this one would fail in the same way,
	// until somebody changes something.
	Permanent bool
	// Ended says that this pod will not serve any more, whatever happens.
	Ended bool
}

// String returns reason and message.
func (f Failure) String() string {
	if f.Message == "" {
		return f.Reason
	}
	return f.Reason + ": " + f.Message
}

// Status returns how pod is.
func Status(_ *corev1.Pod) PodStatus { return PodStatus{} }
