// SPDX-License-Identifier: Apache-2.0

// Package lease contains the pod-manager's API for Go: callers request a lease on a function pod, use the pod and
// finish the lease.
//
// A [Manager] grants leases. It is the pod-manager itself in the same process, or a [Client] of a pod-manager in
// another process, where [Handler] serves the calls. Evaluations do not pass through the Manager, because the holder
// of a lease calls the pod directly.
package lease

import (
	"context"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

type (
	// Open requests a lease.
	Open = podmanagerv1.LeaseRequest_Open
	// Waiting reports the cause of a wait for a lease.
	Waiting = podmanagerv1.LeaseResponse_Waiting
	// Granted reports the pod of a lease.
	Granted = podmanagerv1.LeaseResponse_Granted
	// Outcome is the state of the pod as the holder of a lease observed it.
	Outcome = podmanagerv1.LeaseRequest_Outcome
)

// The outcomes.
const (
	Done      = podmanagerv1.LeaseRequest_OUTCOME_DONE
	PodBroken = podmanagerv1.LeaseRequest_OUTCOME_POD_BROKEN
	Abandoned = podmanagerv1.LeaseRequest_OUTCOME_ABANDONED
)

// Manager grants leases on function pods, and lists the existing pods. Its errors have fault classes, but never
// fault.NotFound. Messages are shared, so that neither the caller nor the Manager may change a message after passing
// it on.
type Manager interface {
	// Lease waits until a pod has capacity, and returns a lease on it. The caller must call the lease's Finish.
	// Cancelling ctx stops the wait, but does not affect a granted lease.
	//
	// Lease calls waiting when a wait begins, and whenever the cause of the wait changes. It calls waiting in the
	// caller's goroutine, and therefore never after it has returned. The function waiting may block: a Manager passes
	// the latest state, and may skip states in between.
	Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error)

	// ListPools returns the current pools.
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)
}

// Lease is the right to use a pod for a single evaluation.
type Lease interface {
	// Granted returns the pod's address and how it was obtained.
	Granted() *Granted
	// Finish returns the lease to the Manager and reports the state of the pod. Reason explains an outcome other than
	// Done. Only the first call has an effect. Finish does not wait for the network.
	Finish(outcome Outcome, reason string)
}
