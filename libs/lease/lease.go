// SPDX-License-Identifier: Apache-2.0

// Package lease is the Go side of the pod-manager's contract: a lease on a function pod is granted,
// used and finished.
//
// A [Manager] grants leases: the pod-manager itself, in the same process, or a [Client] of a remote pod-manager, which
// [Handler] serves. Evaluations never pass through it: the holder of a lease calls the pod.
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

// Manager grants leases on function pods, and lists the existing pods. Errors have fault classes, and none is of class
// fault.NotFound. Messages are shared: neither side may change a message after passing it on.
type Manager interface {
	// Lease waits until a pod has capacity, and returns the granted lease. The caller returns it with Finish. Cancelling
	// ctx stops the wait, and nothing after it: a granted lease outlives ctx.
	//
	// waiting is called before the wait begins, unless there is none, and whenever the cause of the wait changes. It is
	// called from the goroutine that called Lease, so never after Lease has returned, and it may block: a Manager passes
	// the latest state, and may skip states in between.
	Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error)

	// ListPools returns the current pools.
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)
}

// Lease is the right to use a pod for a single evaluation.
type Lease interface {
	// Granted returns the pod's address and how it was obtained.
	Granted() *Granted
	// Finish returns the lease and reports the state of the pod; reason explains an outcome other than Done. Calls after
	// the first do nothing. Finish does not wait for the network.
	Finish(outcome Outcome, reason string)
}
