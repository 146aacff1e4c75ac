// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// MaxRequestBytes is the maximum size of a client's message to a pod-manager. A message contains little more than the
// name of an image or the description of a pod's problem.
const MaxRequestBytes = 64 << 10

// Handler returns the RPC service of a pod-manager, which passes calls to m. The function stopping returns a context
// that is done when the server shuts down. Clients that wait for a lease or watch pools then get an error, so that they
// call another replica. Granted leases stay valid until clients finish them.
func Handler(stopping func() context.Context, m Manager) podmanagerv1connect.PodManagerServiceHandler {
	return &handler{manager: m, stopping: stopping()}
}

var errStopping = Elsewhere(fault.New(fault.Unavailable, "this pod-manager is shutting down: call another replica"))

type handler struct {
	manager  Manager
	stopping context.Context //nolint:containedctx // of the process
}

// Lease implements the Lease RPC. The client holds the lease until the stream ends.
func (h *handler) Lease(ctx context.Context,
	stream *connect.BidiStream[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse],
) error {
	open, err := receiveOpen(stream)
	if err != nil {
		return err
	}
	lease, err := h.awaitLease(ctx, stream, open)
	if err != nil {
		return err
	}
	granted := &podmanagerv1.LeaseResponse{Message: &podmanagerv1.LeaseResponse_Granted_{Granted: lease.Granted()}}
	if err := stream.Send(granted); err != nil {
		lease.Finish(Abandoned, "the client was gone when its lease was granted")
		return err
	}
	lease.Finish(receiveFinish(stream))
	return nil
}

// receiveOpen receives the request for a lease, which must be the first message on the stream.
func receiveOpen(stream *connect.BidiStream[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse]) (*Open, error) {
	req, err := stream.Receive()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if req.GetOpen() == nil {
		return nil, fault.New(fault.Invalid, "the first message on a Lease stream must be open")
	}
	return req.GetOpen(), nil
}

// awaitLease waits until the manager grants a lease, and sends each new reason for the wait to the client.
func (h *handler) awaitLease(ctx context.Context,
	stream *connect.BidiStream[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse], open *Open,
) (Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var waited sync.Once
	release := func() bool { return true }
	defer func() { release() }()
	lease, err := h.manager.Lease(ctx, open, func(w *Waiting) {
		// A shutdown may cancel this request as soon as the request must wait. It does not cancel requests that are granted
		// without a wait.
		waited.Do(func() { release = h.cancelAtStop(cancel) })
		// We ignore the error of Send: if the client has disconnected, ctx is canceled too.
		_ = stream.Send(&podmanagerv1.LeaseResponse{Message: &podmanagerv1.LeaseResponse_Waiting_{Waiting: w}})
	})
	return lease, waitError(ctx, err)
}

// receiveFinish waits until the client finishes the lease, and returns the outcome. If the stream ends without a
// finish message, the outcome is Abandoned.
func receiveFinish(stream *connect.BidiStream[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse]) (outcome Outcome,
	reason string,
) {
	req, err := stream.Receive()
	if err != nil {
		return Abandoned, "the client's stream ended without a finish message: " + err.Error()
	}
	finish := req.GetFinish()
	if finish == nil {
		return Abandoned, "the client sent something else than finish"
	}
	if finish.GetOutcome() == podmanagerv1.LeaseRequest_OUTCOME_UNSPECIFIED {
		return Done, finish.GetReason()
	}
	return finish.GetOutcome(), finish.GetReason()
}

// ListPools implements the service.
func (h *handler) ListPools(ctx context.Context,
	req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	return h.manager.ListPools(ctx, req)
}

// WatchPools implements the service.
func (h *handler) WatchPools(ctx context.Context, req *podmanagerv1.WatchPoolsRequest,
	stream *connect.ServerStream[podmanagerv1.WatchPoolsResponse],
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer h.cancelAtStop(cancel)()
	list := func(ctx context.Context) ([]*podmanagerv1.Pool, error) {
		resp, err := h.manager.ListPools(ctx, &podmanagerv1.ListPoolsRequest{Image: req.GetImage()})
		return resp.GetPools(), err
	}
	return waitError(ctx, watchPools(ctx, list, stream.Send))
}

// cancelAtStop cancels an RPC when the process shuts down. The caller can prevent this by calling the returned function
// before the shutdown.
func (h *handler) cancelAtStop(cancel context.CancelCauseFunc) (release func() bool) {
	return context.AfterFunc(h.stopping, func() { cancel(errStopping) })
}

// waitError returns errStopping if the shutdown of the process interrupted an RPC while it waited, and otherwise err.
func waitError(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return err
}

// watchInterval is the interval at which a watch checks the pools of pods for changes. The watch misses a change that
// is reverted within the interval.
const watchInterval = 500 * time.Millisecond

type poolKey struct{ reference, digest string }

// watchPools lists the pools of pods every watchInterval, and sends each change since the last list. It sends the
// message Synced after the first list. It ignores errors of the class fault.Unavailable, so that the watch survives
// short outages. It compares each list with earlier lists. Therefore calls of list must not modify the pools that
// earlier calls returned.
func watchPools(
	ctx context.Context,
	list func(context.Context) ([]*podmanagerv1.Pool, error),
	send func(*podmanagerv1.WatchPoolsResponse) error,
) error {
	sent := make(map[poolKey]*podmanagerv1.Pool)
	for synced := false; ; {
		pools, err := list(ctx)
		if err != nil && fault.Of(err) != fault.Unavailable {
			return err
		}
		var changes []*podmanagerv1.WatchPoolsResponse
		if err == nil {
			changes = comparePools(sent, pools)
		}
		if err == nil && !synced {
			synced = true
			change := &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: change})
		}
		for _, change := range changes {
			if err := send(change); err != nil {
				return err
			}
		}
		if !retry.Sleep(ctx, watchInterval) {
			return ctx.Err()
		}
	}
}

// comparePools returns a message for each pool that was added, changed or removed. The map sent contains the pools that
// were sent to the client. comparePools compares it with the given pools, and updates it.
func comparePools(sent map[poolKey]*podmanagerv1.Pool, pools []*podmanagerv1.Pool) []*podmanagerv1.WatchPoolsResponse {
	var changes []*podmanagerv1.WatchPoolsResponse
	now := make(map[poolKey]bool, len(pools))
	for _, p := range pools {
		key := poolKey{p.GetKey().GetReference(), p.GetKey().GetDigest()}
		now[key] = true
		if !proto.Equal(sent[key], p) {
			sent[key] = p
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: p}})
		}
	}
	for key, p := range sent {
		if !now[key] {
			delete(sent, key)
			removed := &podmanagerv1.WatchPoolsResponse_Removed{Removed: p.GetKey()}
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: removed})
		}
	}
	return changes
}
