// SPDX-License-Identifier: Apache-2.0

// Package lease is the Go API of the pod-manager. A lease permits a caller to run an evaluation in a function's pod.
// The caller sends its input directly to the pod, so that large inputs do not pass through the pod-manager. Callers get
// leases from a [Manager]. This is either the pod-manager in the same process, or a [Client] of a pod-manager in
// another process, which serves the client's calls with [Handler].
package lease

import (
	"context"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

type (
	// Open requests a lease.
	Open = podmanagerv1.LeaseRequest_Open
	// Waiting reports why a lease has not been granted yet, for example because the pod is being created.
	Waiting = podmanagerv1.LeaseResponse_Waiting
	// Granted reports the pod of a lease.
	Granted = podmanagerv1.LeaseResponse_Granted
	// Outcome is the state of the pod at the end of a lease, as the caller observed it.
	Outcome = podmanagerv1.LeaseRequest_Outcome
)

// Values of Outcome: the pod answered, the pod is broken, or the caller left before it got an answer.
const (
	Done      = podmanagerv1.LeaseRequest_OUTCOME_DONE
	PodBroken = podmanagerv1.LeaseRequest_OUTCOME_POD_BROKEN
	Abandoned = podmanagerv1.LeaseRequest_OUTCOME_ABANDONED
)

// Manager grants leases on function pods to callers, and lists the pods. Its errors have a class of package fault, but
// never the class fault.NotFound. A message that a caller passes to the Manager, or the Manager to a caller, must not
// change afterwards, because other goroutines may still read it.
type Manager interface {
	// Lease waits until a pod can run another evaluation. Callers must call Finish on the returned lease. Canceling ctx
	// ends the wait, but not a granted lease. Lease passes the reason for the wait to the given callback, first when the
	// wait begins, and again when the reason changes. The callback runs in the caller's goroutine. If the callback blocks,
	// Lease may skip all reasons except the latest.
	Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error)

	// ListPools returns the current pools.
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)
}

// Lease is the right to use a pod for a single evaluation.
type Lease interface {
	// Granted returns the pod's address and the phases of the wait for the lease, such as the creation of the pod.
	Granted() *Granted
	// Finish returns the lease to the Manager and reports the state of the pod. If outcome is not Done, reason
	// explains it. Only the first call has an effect. Finish does not wait for the network.
	Finish(outcome Outcome, reason string)
}
