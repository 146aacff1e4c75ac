// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Action is a decision of the [Machine]. The Machine's caller carries it out in the background.
type Action interface{ isAction() }

// Grant grants a lease on a pod.
type Grant struct {
	Lease    LeaseID
	Function Function
	Pod, UID string
	Address  string
	Identity Identity
	ByTag    bool // see [Observation.ByTag]
	Cold     bool
	Phases   []PhaseDuration
}

// PhaseDuration is the time that a lease waited in a phase.
type PhaseDuration struct {
	Phase    Phase
	Duration time.Duration
}

// Reject rejects a lease with an error.
type Reject struct {
	Lease LeaseID
	Class fault.Class
	// Reason is a sentence for users.
	Reason string
	// RetryAfter is the delay before a retry. It is zero if the delay is unknown.
	RetryAfter time.Duration
	// Elsewhere is true if another replica may grant the lease. Owner is the address of that replica. If Owner is
	// empty, any other replica may.
	Elsewhere bool
	Owner     string
}

// Report tells a lease's caller the cause of the wait.
type Report struct {
	Lease   LeaseID
	Waiting Waiting
}

// Waiting describes the cause of a lease's wait.
type Waiting struct {
	Phase    Phase
	Reason   string
	Position int // position in the queue, from 1
	Pod      string
}

// Create creates a pod, and its Service if pods are reached through Services. An existing pod with this name counts
// as created. The result is [PodObserved] or [CreateFailed].
type Create struct {
	Function     Function
	Slot         int
	Name         string
	ReclaimAfter time.Time
	// Reason explains the creation.
	Reason Reason
}

// Delete deletes a pod and its Service. The result is [PodGone] or [DeleteFailed].
type Delete struct {
	Name, UID string
	Function  Function
	Slot      int
	Reason    string
	// Eviction is the kind of the reason, for metrics.
	Eviction string
	// Foreign is true if another replica owns the function, and the pod must be deleted nevertheless.
	Foreign bool
}

// Reason is the reason for the creation of a pod.
type Reason int

// The reasons.
const (
	// ForLeases means that the pool needs a further pod for its leases.
	ForLeases Reason = iota
	// ForMinimum means that the pool has fewer pods than its minimum.
	ForMinimum
	// ForVersion means that the pod replaces an outdated pod, whose template or settings have changed.
	ForVersion
)

// String returns the reason's name.
func (r Reason) String() string { return [...]string{"leases", "minimum", "version"}[r] }

// Extend writes a pod's expiry to its annotation.
type Extend struct {
	Name, UID    string
	ReclaimAfter time.Time
}

// Probe checks the health of a pod's wrapper server until the server is healthy, or the pod is deleted. The result is
// [Probed]. If the server does not answer for a while, a single [Unanswered] is sent before.
type Probe struct {
	Name, UID, Address string
	Identity           Identity
	// Question is the number of the probe. [Probed] and [Unanswered] contain it.
	Question uint64
	// Timeout limits the probe. Zero means no limit.
	Timeout time.Duration
}

// Unprobe cancels the open probe of a pod.
type Unprobe struct{ Name, UID string }

// StandDown makes this replica own no functions, for a reason, as long as another replica can own them. An empty
// reason makes this replica own functions again.
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
