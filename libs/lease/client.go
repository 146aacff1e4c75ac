// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// finishTimeout is the maximum wait for the pod-manager to close the stream of a finished lease.
const finishTimeout = 10 * time.Second

// Client requests leases on pods from a pod-manager in another process. It implements [Manager].
type Client struct {
	url string
	rpc podmanagerv1connect.PodManagerServiceClient
}

// NewClient returns a client for the pod-manager at url, such as https://host:port. The HTTP client must support
// HTTP/2. It must not have a timeout, because the request for a lease stays open as long as the lease.
func NewClient(httpClient connect.HTTPClient, url string, options ...connect.ClientOption) *Client {
	options = append([]connect.ClientOption{connect.WithGRPC()}, options...)
	return &Client{url: url, rpc: podmanagerv1connect.NewPodManagerServiceClient(httpClient, url, options...)}
}

// stream is the client's side of the RPC stream of a lease. When the stream ends, the lease ends too.
type stream = connect.BidiStreamForClientSimple[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse]

// Lease implements [Manager]. It returns an error of the class fault.Unavailable if it cannot reach the pod-manager,
// or if the connection breaks before the lease is granted. If the connection breaks later, no error occurs, because
// the caller can still use the pod.
func (c *Client) Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error) {
	// The stream has its own context. Canceling ctx ends only the wait, because a granted lease still needs its stream.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s, err := c.rpc.Lease(streamCtx)
	if err != nil {
		cancel()
		return nil, c.callError(ctx, err)
	}
	leave := context.AfterFunc(ctx, func() {
		cancel()
		// The HTTP/2 client notices the cancellation only after its current read of the request body. CloseRequest interrupts
		// this read.
		_ = s.CloseRequest()
	})
	granted, err := awaitGrant(s, open, waiting)
	// If leave returns false, ctx is done and the stream is canceled. The lease is then lost, even if it was granted.
	if !leave() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		_ = s.CloseRequest()
		return nil, c.callError(ctx, err)
	}
	return &clientLease{granted: granted, stream: s, cancel: cancel}, nil
}

// awaitGrant sends the request for a lease and waits until the pod-manager grants it.
func awaitGrant(s *stream, open *Open, waiting func(*Waiting)) (*Granted, error) {
	// We ignore the error of Send, because Receive returns the cause.
	_ = s.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Open_{Open: open}})
	for {
		resp, err := s.Receive()
		if err != nil {
			return nil, err
		}
		switch msg := resp.GetMessage().(type) {
		case *podmanagerv1.LeaseResponse_Waiting_:
			waiting(msg.Waiting)
		case *podmanagerv1.LeaseResponse_Granted_:
			return msg.Granted, nil
		}
	}
}

// callError converts an error of an RPC to the pod-manager to an error of package fault. It marks the error with
// [Elsewhere] if another replica may grant the lease.
func (c *Client) callError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Of(ctx.Err()), "wait for the pod-manager: %w", context.Cause(ctx))
	case errors.Is(err, io.EOF):
		return Elsewhere(unansweredError{fault.New(fault.Unavailable,
			"the pod-manager at %s ended the stream without an answer", c.url)})
	case !connect.IsWireError(err):
		return Elsewhere(unansweredError{fault.New(fault.Unavailable, "the pod-manager at %s cannot be reached: %w", c.url,
			rpcfault.FromConnect(err))})
	}
	if owner, marked := elsewhereInWire(err); marked {
		return OwnedBy(owner, rpcfault.FromConnect(err))
	}
	return rpcfault.FromConnect(err)
}

// clientLease is a lease that the pod-manager granted. Its stream stays open until the caller calls Finish.
type clientLease struct {
	granted *Granted
	stream  *stream
	cancel  context.CancelFunc
	once    sync.Once
}

// Granted implements Lease.
func (l *clientLease) Granted() *Granted { return l.granted }

// Finish implements Lease. It sends the outcome in the background, so that callers need not wait for the network.
func (l *clientLease) Finish(outcome Outcome, reason string) {
	l.once.Do(func() { go l.closeStream(&podmanagerv1.LeaseRequest_Finish{Outcome: outcome, Reason: reason}) })
}

// closeStream sends the outcome of the lease and waits until the server closes the stream. The wait ends after
// finishTimeout at the latest. closeStream ignores errors, because a broken stream ends the lease too.
func (l *clientLease) closeStream(finish *podmanagerv1.LeaseRequest_Finish) {
	defer l.cancel()
	timeout := time.AfterFunc(finishTimeout, l.cancel)
	defer timeout.Stop()
	_ = l.stream.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Finish_{Finish: finish}})
	_ = l.stream.CloseRequest()
	for {
		if _, err := l.stream.Receive(); err != nil {
			break
		}
	}
	_ = l.stream.CloseResponse()
}

// ListPools implements Manager.
func (c *Client) ListPools(ctx context.Context,
	req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	resp, err := c.rpc.ListPools(ctx, req)
	if err != nil {
		return nil, c.callError(ctx, err)
	}
	return resp, nil
}
