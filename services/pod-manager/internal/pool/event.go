package pool

import (
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Event is something that happened. Events may come late, twice, or not at all;
// those about one pod come in order. Observations that do not are ignored as far as
// their versions tell.
type Event interface{ apply(m *Machine) }

// LeaseID identifies a lease. The owner of the machine never uses one twice.
type LeaseID uint64

// LeaseRequested asks for a place on a pod. It is answered by one [Grant] or one
// [Reject], with any number of [Report] before, unless [LeaseEnded] comes first.
type LeaseRequested struct {
	Lease    LeaseID
	Function Function
	// Avoid are the names of pods that failed this caller before.
	Avoid []string
}

// LeaseEnded gives a place back, or gives up waiting for one. It is ignored for a
// lease that is not known any more.
type LeaseEnded struct {
	Lease LeaseID
	// Broken is what was wrong with the pod; empty if nothing was.
	Broken string
}

// PodObserved is what Kubernetes says about a pod, when it was created by this
// machine, when it is found, and whenever it changes.
type PodObserved struct{ Observation }

// Observation is a pod as Kubernetes shows it.
type Observation struct {
	Name, UID, ResourceVersion string
	Function                   Function
	Slot                       int
	// TemplateVersion and SettingsVersion are empty if the pod does not say.
	TemplateVersion, SettingsVersion string
	Created                          time.Time
	// ReclaimAfter is when the pod may be collected; zero if it does not say, or
	// not readably.
	ReclaimAfter time.Time

	// Phase is the step on the way to readiness. PHASE_CONNECTING means that its
	// containers run.
	Phase podmanagerv1.Phase
	// Reason says more about the phase, for people.
	Reason string
	// Address is where the wrapper server will listen, as host:port; empty while
	// the pod has none.
	Address string
	// HealthAddress is where to ask for its health; empty for Address.
	HealthAddress string
	Node          string
	// Deleting says that Kubernetes is ending the pod.
	Deleting bool
	// Problem is what keeps the pod from serving.
	Problem Problem
}

// Problem is what keeps a pod from serving.
type Problem struct {
	Kind ProblemKind
	// Reason is the kubelet's or scheduler's own words.
	Reason string
	// OutOfMemory says that the kernel ended the pod for memory.
	OutOfMemory bool
}

// ProblemKind says what a problem means for those who wait.
type ProblemKind int

const (
	// None is no problem.
	None ProblemKind = iota
	// Stuck is a pod that may yet become ready by itself, such as one for which
	// there is no room on any node now.
	Stuck
	// Held is a pod that may yet become ready by itself too, as soon as the Kubernetes
	// API can do something again: nobody has to change anything.
	Held
	// Lost is a pod that ended for reasons of its own, such as an eviction: another
	// one may well succeed.
	Lost
	// Fatal is a pod that cannot become ready, and neither can another one like it,
	// such as one whose image cannot be pulled.
	Fatal
)

// open says whether the pod may yet become ready by itself.
func (k ProblemKind) open() bool { return k == Stuck || k == Held }

// broken says whether it will not.
func (k ProblemKind) broken() bool { return k == Lost || k == Fatal }

// ForeignObserved says that there is a pod of another function runner, which has an id
// like ours: a Service of that name leads to it.
type ForeignObserved struct{ Name, ID string }

// PodGone says that a pod is no more, be it ours or not.
type PodGone struct{ Name, UID string }

// CreateFailed says that a pod could not be created. The pod may exist all the same.
type CreateFailed struct {
	Name    string
	Problem Problem
}

// DeleteFailed says that a pod could not be deleted, for instance because it changed
// after that was decided.
type DeleteFailed struct{ Name, UID, Reason string }

// Probed says what the wrapper server of a pod answered to [Probe].
type Probed struct {
	Name, UID string
	// Question is the Probe's. Answers to earlier ones come too late.
	Question uint64
	// Unhealthy is why it does not serve; empty if it does.
	Unhealthy string
}

// MinPodsSet has the pool of a function keep at least so many pods, whether or not a
// lease needs them, until another one says otherwise. Pods beyond the limit of the pool,
// or of all pools, are not created for it.
type MinPodsSet struct {
	Function Function
	Pods     int
}

// Configured replaces the configuration.
type Configured struct{ Config Config }

// Tick says that time has passed. It comes about every second.
type Tick struct{}
