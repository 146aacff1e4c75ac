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

// finishTimeout limits the time for closing the stream of a finished lease.
const finishTimeout = 10 * time.Second

// Client is a Manager that calls a pod-manager in another process.
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

// stream is the client's side of a Lease stream.
type stream = connect.BidiStreamForClientSimple[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse]

// Lease implements Manager. If the pod-manager cannot be reached, or the connection breaks while the lease waits, the
// error has the class fault.Unavailable. A connection that breaks later is not reported, because the pod still
// exists.
func (c *Client) Lease(ctx context.Context, open *Open, waiting func(*Waiting)) (Lease, error) {
	// The stream must not end with ctx, because closing the stream returns the lease.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s, err := c.rpc.Lease(streamCtx)
	if err != nil {
		cancel()
		return nil, c.callError(ctx, err)
	}
	leave := context.AfterFunc(ctx, func() {
		cancel()
		// An HTTP/2 client notices a cancelled context only between two reads of the request body, and the current
		// read blocks until the body is closed.
		_ = s.CloseRequest()
	})
	granted, err := awaitGrant(s, open, waiting)
	// If leave returns false, ctx was done, and the function that AfterFunc started has broken the stream.
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
	// We ignore this error, because Receive returns it too.
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

// callError converts the error of a call into the error for the caller: with a class, and marked by [Elsewhere] if
// another replica may succeed.
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

// clientLease is a lease granted over a stream.
type clientLease struct {
	granted *Granted
	stream  *stream
	cancel  context.CancelFunc
	once    sync.Once
}

// Granted implements Lease.
func (l *clientLease) Granted() *Granted { return l.granted }

// Finish implements Lease. It sends the message in the background.
func (l *clientLease) Finish(outcome Outcome, reason string) {
	l.once.Do(func() { go l.closeStream(&podmanagerv1.LeaseRequest_Finish{Outcome: outcome, Reason: reason}) })
}

// closeStream sends the last message and waits up to finishTimeout until the server has closed the stream. It ignores
// errors, because they break the stream, which also returns the lease.
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
