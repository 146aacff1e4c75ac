// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Action is something to be done. None of them may keep the machine waiting.
type Action interface{ isAction() }

// Grant answers a lease with a pod.
type Grant struct {
	Lease    LeaseID
	Function Function
	Pod, UID string
	Address  string
	Identity Identity
	ByTag    bool // see Observation
	Cold     bool
	Phases   []PhaseDuration
}

// PhaseDuration is how long a lease spent in a phase.
type PhaseDuration struct {
	Phase    Phase
	Duration time.Duration
}

// Reject answers a lease with an error.
type Reject struct {
	Lease LeaseID
	Class fault.Class
	// Reason is a sentence for users.
	Reason string
	// RetryAfter is when trying again makes sense; zero if that is not known.
	RetryAfter time.Duration
	// Elsewhere reports whether another replica may grant the lease: the one at the address Owner, or any if that is
	// empty.
	Elsewhere bool
	Owner     string
}

// Report is what a lease waits for.
type Report struct {
	Lease   LeaseID
	Waiting Waiting
}

// Waiting is what a lease waits for.
type Waiting struct {
	Phase    Phase
	Reason   string
	Position int // in the queue, from one
	Pod      string
}

// Create creates a pod, and its Service if it gets one. A pod of this name that exists already serves as well.
// [PodObserved] or [CreateFailed] follows.
type Create struct {
	Function     Function
	Slot         int
	Name         string
	ReclaimAfter time.Time
	// Reason is why the pod is created.
	Reason Reason
}

// Delete deletes a pod and its Service. [PodGone] follows, in time, or [DeleteFailed].
type Delete struct {
	Name, UID string
	Function  Function
	Slot      int
	Reason    string
	// Eviction is the kind of reason, for metrics.
	Eviction string
	// Foreign is true if the pod may be deleted although another replica owns the function.
	Foreign bool
}

// Reason is why a pod is created.
type Reason int

// The reasons.
const (
	// ForLeases is more leases than the pods of the pool are meant for.
	ForLeases Reason = iota
	// ForMinimum is a minimum of pods.
	ForMinimum
	// ForVersion is that all pods are outdated.
	ForVersion
)

// String returns the reason's name.
func (r Reason) String() string { return [...]string{"leases", "minimum", "version"}[r] }

// Extend writes a pod's expiry to its annotation.
type Extend struct {
	Name, UID    string
	ReclaimAfter time.Time
}

// Probe asks the wrapper server of a pod for its health until it serves, or the pod is gone. [Probed] follows, after
// one [Unanswered] if that takes long.
type Probe struct {
	Name, UID, Address string
	Identity           Identity
	// Question tells this probe from earlier ones of the same pod.
	Question uint64
	// Timeout bounds it; zero means that it lasts as long as the pod.
	Timeout time.Duration
}

// Unprobe ends the open probe of a pod.
type Unprobe struct{ Name, UID string }

// StandDown makes this replica own no functions, for a reason, while another replica can. An empty reason ends that.
type StandDown struct{ Reason string }

func (Grant) isAction()  {}
func (Reject) isAction() {}
func (Report) isAction() {}
func (Create) isAction() {}
func (Delete) isAction() {}
func (Extend) isAction() {}
func (Probe) isAction()  {}

func (Unprobe) isAction()   {}
func (StandDown) isAction() {}
