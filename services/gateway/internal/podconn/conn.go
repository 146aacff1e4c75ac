// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/krm-function-runner/function-runner/libs/dial"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// Conn is a connection to one pod.
type Conn struct {
	evaluator.FunctionEvaluatorClient

	pool   *Pool
	pod    Pod
	client *grpc.ClientConn
	frames frameBudget
	// dialError is the error of the last attempt to connect, including the TLS handshake. It is nil after a
	// successful attempt.
	dialError atomic.Pointer[error]

	// Guarded by pool.mu. dropped is true if the pool no longer contains the connection.
	users   int
	used    time.Time
	dropped bool
}

func (p *Pool) newConn(pod Pod) (*Conn, error) {
	c := &Conn{pool: p, pod: pod}
	c.frames.Store(maxSmallFrames)
	transport, err := c.podCredentials(p.cfg.Identity)
	if err != nil {
		return nil, err
	}
	// The scheme passthrough makes each attempt look up the name again, because the DNS name of a new Service may not
	// exist yet.
	client, err := grpc.NewClient("passthrough:///"+pod.Address, append(slices.Clip(p.options),
		grpc.WithTransportCredentials(frameLimitedCredentials{transport, &c.frames}), grpc.WithContextDialer(c.dial))...)
	if err != nil {
		return nil, err
	}
	c.client = client
	c.FunctionEvaluatorClient = evaluator.NewFunctionEvaluatorClient(client)
	return c, nil
}

// EvaluateFunction implements evaluator.FunctionEvaluatorClient.
func (c *Conn) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest, options ...grpc.CallOption,
) (*evaluator.EvaluateFunctionResponse, error) {
	c.frames.addCall()
	return c.FunctionEvaluatorClient.EvaluateFunction(ctx, req, options...)
}

func (c *Conn) close() { _ = c.client.Close() }

// Release ends a use of the connection. If the pod is broken, the pool does not reuse the connection.
func (c *Conn) Release(broken bool) { c.pool.releaseConn(c, broken) }

// Connected reports whether the connection is established.
func (c *Conn) Connected() bool { return c.client.GetState() == connectivity.Ready }

// Connect waits until the connection is established. It retries until ctx ends, and then returns the error of the
// last attempt.
func (c *Conn) Connect(ctx context.Context) error {
	for {
		state := c.client.GetState()
		if state == connectivity.Ready {
			return nil
		}
		c.client.Connect()
		if !c.client.WaitForStateChange(ctx, state) {
			return c.notConnected(ctx)
		}
	}
}

// notConnected returns the error for a connection that is not established when ctx ends.
func (c *Conn) notConnected(ctx context.Context) error {
	if err := c.dialError.Load(); err != nil {
		return *err
	}
	return fmt.Errorf("connect to %s: %w", c.pod.Address, context.Cause(ctx))
}

// dial opens a connection to address. While attempts are unanswered it makes further attempts, because a node drops
// packets to a new Service until the node has the Service's rules. A refused connection is an error: gRPC then
// retries.
func (c *Conn) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := dial.Staggered(ctx, c.dialOnce, address)
	if err == nil && c.pod.ID == "" { // a pod with an identity can still fail the TLS handshake
		c.dialError.Store(nil)
	}
	return conn, err
}

// dialOnce attempts to connect once, and stores the error in c.dialError.
func (c *Conn) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // canceled because another attempt succeeded
		c.dialError.Store(&err)
	}
	return conn, err
}
