package pool

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Action is something to be done. None of them may keep the machine waiting.
type Action interface{ action() }

// Grant answers a lease with a place on a pod.
type Grant struct {
	Lease    LeaseID
	Function Function
	Pod, UID string
	Address  string
	Cold     bool
	Phases   []PhaseDuration
}

// PhaseDuration is how long a lease spent in a phase.
type PhaseDuration struct {
	Phase    podmanagerv1.Phase
	Duration time.Duration
}

// Reject answers a lease with an error.
type Reject struct {
	Lease LeaseID
	Class fault.Class
	// Reason is a sentence for people.
	Reason string
	// RetryAfter is when trying again makes sense; zero if that is not known.
	RetryAfter time.Duration
}

// Report tells a lease what it waits for.
type Report struct {
	Lease   LeaseID
	Waiting Waiting
}

// Waiting is what a lease waits for.
type Waiting struct {
	Phase    podmanagerv1.Phase
	Reason   string
	Position int // in the queue, from one
	Pod      string
}

// Create creates a pod, and its Service if there is to be one. A pod of this name
// that exists already is as good as a new one. What comes of it is [PodObserved] or
// [CreateFailed].
type Create struct {
	Function     Function
	Slot         int
	Name         string
	ReclaimAfter time.Time
}

// Delete deletes a pod and its Service. What comes of it is [PodGone], in time, or
// [DeleteFailed].
type Delete struct {
	Name, UID string
	// ResourceVersion is the version of the pod about which this was decided: it
	// must not be deleted if it has another one. Empty means that any will do.
	ResourceVersion string
	Function        Function
	Slot            int
	Reason          string
	// Eviction is the kind of reason, for metrics.
	Eviction string
}

// Extend writes down until when a pod may be kept.
type Extend struct {
	Name, UID    string
	ReclaimAfter time.Time
}

// Probe asks the wrapper server of a pod for its health until it serves, or the pod
// goes. What comes of it is [Probed].
type Probe struct {
	Name, UID, Address string
	// Question tells this question from earlier ones to the same pod.
	Question uint64
	// Patience is how long it may take; zero means for as long as there is the pod.
	Patience time.Duration
}

func (Grant) action()  {}
func (Reject) action() {}
func (Report) action() {}
func (Create) action() {}
func (Delete) action() {}
func (Extend) action() {}
func (Probe) action()  {}
