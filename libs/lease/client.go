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

// finishTimeout limits the time that a finished lease waits until the pod-manager has closed the stream.
const finishTimeout = 10 * time.Second

// Client is a Manager that requests leases from a pod-manager in another process.
type Client struct {
	url string
	rpc podmanagerv1connect.PodManagerServiceClient
}

// NewClient returns a client of the pod-manager at url, which is http://host:port or https://host:port. The HTTP
// client must speak HTTP/2, and must not have a timeout, because a lease lasts as long as its request.
func NewClient(httpClient connect.HTTPClient, url string, options ...connect.ClientOption) *Client {
	options = append([]connect.ClientOption{connect.WithGRPC()}, options...)
	return &Client{url: url, rpc: podmanagerv1connect.NewPodManagerServiceClient(httpClient, url, options...)}
}

// stream is the client's side of the RPC stream that represents a lease. The lease ends when the stream ends.
type stream = connect.BidiStreamForClientSimple[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse]

// Lease implements Manager. If the pod-manager cannot be reached, or the connection breaks before the lease is
// granted, the error has the class fault.Unavailable. If the connection breaks later, the holder of the lease gets
// no error, because it can still use the pod.
func (c *Client) Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error) {
	// The stream must outlive ctx, because the lease ends with its stream. ctx limits only the wait for the lease.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s, err := c.rpc.Lease(streamCtx)
	if err != nil {
		cancel()
		return nil, c.callError(ctx, err)
	}
	leave := context.AfterFunc(ctx, func() {
		cancel()
		// Without this call, the cancellation would have no effect. The HTTP/2 client checks its context only between two
		// reads of the request body, and the current read returns only when the body is closed.
		_ = s.CloseRequest()
	})
	granted, err := awaitGrant(s, open, waiting)
	// ctx was done before the call of leave. The stream is then canceled, and the granted lease is lost with it.
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

// awaitGrant requests a lease over s and waits until it is granted.
func awaitGrant(s *stream, open *Open, waiting func(*Waiting)) (*Granted, error) {
	// We ignore the error of Send, because Receive returns the same error.
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

// callError converts the error of a call to the pod-manager. The returned error has a class of package fault, and
// is marked by [Elsewhere] if another replica of the pod-manager may grant the lease.
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

// clientLease is a granted lease. Its stream to the pod-manager stays open until Finish.
type clientLease struct {
	granted *Granted
	stream  *stream
	cancel  context.CancelFunc
	once    sync.Once
}

// Granted implements Lease.
func (l *clientLease) Granted() *Granted { return l.granted }

// Finish implements Lease. It sends the outcome in the background, because callers must not wait for the network.
func (l *clientLease) Finish(outcome Outcome, reason string) {
	l.once.Do(func() { go l.closeStream(&podmanagerv1.LeaseRequest_Finish{Outcome: outcome, Reason: reason}) })
}

// closeStream sends the outcome of the lease and waits up to finishTimeout until the server has closed the stream.
// It ignores errors, because they break the stream, and a broken stream also ends the lease.
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
