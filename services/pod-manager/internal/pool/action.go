// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Action is a decision of the [Machine], such as the creation of a pod. The caller of the Machine carries it out.
type Action interface{ isAction() }

// Grant grants a lease on a pod.
type Grant struct {
	Lease    LeaseID
	Function Function
	Pod, UID string
	Address  string
	Identity Identity
	ByTag    bool // true if the image has no digest, see [Observation.ByTag]
	Cold     bool
	Phases   []PhaseDuration
}

// PhaseDuration is the time that a lease waited in a phase, such as the pull of the image.
type PhaseDuration struct {
	Phase    Phase
	Duration time.Duration
}

// Reject rejects a lease with an error.
type Reject struct {
	Lease LeaseID
	Class fault.Class
	// Reason explains the rejection to users, in a sentence.
	Reason string
	// RetryAfter is the delay after which the caller may retry. It is zero if no delay is known.
	RetryAfter time.Duration
	// Elsewhere is true if another replica may grant the lease. Owner is the other replica's address, or empty if the
	// caller may choose any other replica.
	Elsewhere bool
	Owner     string
}

// Report informs the caller of a waiting lease about the cause of the wait.
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

// Create creates a pod, and its Service if gateways reach pods through Services. If a pod with this name exists,
// the creation counts as successful. The result is the event [PodObserved] or [CreateFailed].
type Create struct {
	Function     Function
	Slot         int
	Name         string
	ReclaimAfter time.Time
	// Reason explains the creation.
	Reason Reason
}

// Delete deletes a pod and its Service. The result is the event [PodGone] or [DeleteFailed].
type Delete struct {
	Name, UID string
	// Version is the resource version that the pod must still have, or empty for any version. It prevents the deletion of
	// an unused pod whose expiry another replica has extended.
	Version  string
	Function Function
	Slot     int
	Reason   string
	// Eviction is the kind of deletion, as a label value for metrics.
	Eviction string
	// Foreign is true if this replica must delete the pod although another replica owns its function.
	Foreign bool
}

// Reason is the reason for the creation of a pod.
type Reason string

// Reasons for the creation of a pod.
const (
	// ForLeases means that the pool has too few pods for its leases.
	ForLeases Reason = "leases"
	// ForMinimum means that the pool has fewer pods than its minimum.
	ForMinimum Reason = "minimum"
	// ForVersion means that the pod replaces an outdated pod, built from a former template or former settings.
	ForVersion Reason = "version"
)

// Extend writes a pod's new expiry to the pod's annotation.
type Extend struct {
	Name, UID    string
	ReclaimAfter time.Time
}

// Probe checks the health of a pod repeatedly until the pod is healthy or deleted, or Timeout has passed. The result is
// the event [Probed]. If the pod has not answered after 2 s, a single event [Unanswered] precedes the result.
type Probe struct {
	Name, UID, Address string
	Identity           Identity
	// Question identifies this probe. The resulting events [Probed] and [Unanswered] contain the same number.
	Question uint64
	// Timeout limits the duration of the probe. Zero means no limit.
	Timeout time.Duration
}

// Unprobe cancels the running probe of a pod.
type Unprobe struct{ Name, UID string }

// StandDown hands over this replica's functions to its peers, because function pods do not answer this replica. An
// empty reason permits this replica to own functions again.
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
