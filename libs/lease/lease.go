// SPDX-License-Identifier: Apache-2.0

// Package lease contains the Go API of the pod-manager, which grants leases on function pods. The holder of a lease
// calls the pod directly to evaluate a function, and then finishes the lease. Resource lists therefore do not pass
// through the pod-manager. A [Manager] is either the pod-manager itself, in the same process, or a [Client] of a
// pod-manager in another process, where [Handler] serves the calls.
package lease

import (
	"context"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

type (
	// Open requests a lease.
	Open = podmanagerv1.LeaseRequest_Open
	// Waiting reports why a lease was not granted yet, for example that the pod is being created.
	Waiting = podmanagerv1.LeaseResponse_Waiting
	// Granted reports the pod of a lease.
	Granted = podmanagerv1.LeaseResponse_Granted
	// Outcome is the state of the pod after the evaluation, as the holder of the lease observed it.
	Outcome = podmanagerv1.LeaseRequest_Outcome
)

// Outcomes of a lease: the pod answered, the pod is broken, or the caller left before the pod answered.
const (
	Done      = podmanagerv1.LeaseRequest_OUTCOME_DONE
	PodBroken = podmanagerv1.LeaseRequest_OUTCOME_POD_BROKEN
	Abandoned = podmanagerv1.LeaseRequest_OUTCOME_ABANDONED
)

// Manager grants leases on function pods, and lists the existing pods. Its errors have classes of package fault,
// but never fault.NotFound. Neither the caller nor the Manager may change a message after passing it on, because
// other goroutines may still read it.
type Manager interface {
	// Lease waits until a pod can run another evaluation. The caller must call Finish on the returned lease. Canceling
	// ctx stops the wait, but does not affect a granted lease. When the wait begins, and whenever its cause changes,
	// Lease calls the function waiting in the caller's goroutine. If waiting blocks, Lease may skip all causes of that
	// time but the latest.
	Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error)

	// ListPools returns the current pools.
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)
}

// Lease is the right to use a pod for a single evaluation.
type Lease interface {
	// Granted returns the pod's address, and the phases that the lease waited for, such as the creation of the pod.
	Granted() *Granted
	// Finish returns the lease to the Manager and reports the state of the pod. If outcome is not Done, reason
	// explains it. Only the first call has an effect. Finish does not wait for the network.
	Finish(outcome Outcome, reason string)
}
