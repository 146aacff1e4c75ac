// Package lease is the Go side of the pod-manager's contract: a place on a function
// pod is lent, used, and given back.
//
// A [Manager] lends places: the pod-manager itself, in the same process, or a
// [Client] of one elsewhere, which [Handler] serves. Evaluations never pass through
// it: whoever holds a lease calls the pod.
package lease

import (
	"context"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

type (
	// Open asks for a place.
	Open = podmanagerv1.LeaseRequest_Open
	// Waiting says what a lease waits for.
	Waiting = podmanagerv1.LeaseResponse_Waiting
	// Granted says where the place is.
	Granted = podmanagerv1.LeaseResponse_Granted
	// Outcome is what the holder of a lease found out about the pod.
	Outcome = podmanagerv1.LeaseRequest_Outcome
)

// The outcomes.
const (
	Done      = podmanagerv1.LeaseRequest_OUTCOME_DONE
	PodBroken = podmanagerv1.LeaseRequest_OUTCOME_POD_BROKEN
	Abandoned = podmanagerv1.LeaseRequest_OUTCOME_ABANDONED
)

// Manager lends places on function pods, and says what pods there are. Errors have
// fault classes, and none is of class fault.NotFound. Messages are shared: neither
// side changes one after it was passed on.
type Manager interface {
	// Lease waits until there is a place, and returns it. The caller gives it back
	// with Finish. The end of ctx ends the wait, and nothing after it: a lease that
	// was granted outlives ctx.
	//
	// waiting is called before the wait begins, unless there is none, and whenever
	// what the lease waits for changes. The goroutine that called Lease calls it, so
	// never after Lease returned, and it may take its time: a Manager hands it the
	// latest state, and may skip those that passed meanwhile.
	Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error)

	// ListPools returns the pools as they are now.
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)

	// WatchPools calls send with each pool that exists, then with synced, then with
	// each pool again whenever something in it changes, until ctx ends or send
	// returns an error. It returns that error. Calls do not overlap.
	WatchPools(ctx context.Context, req *podmanagerv1.WatchPoolsRequest, send func(*podmanagerv1.WatchPoolsResponse) error) error
}

// Lease is a place on a pod.
type Lease interface {
	// Granted says where the pod is.
	Granted() *Granted
	// Finish gives the place back and says what became of the pod: reason says why,
	// for an outcome other than Done. Calls after the first do nothing. Finish does
	// not wait for the network.
	Finish(outcome Outcome, reason string)
}
