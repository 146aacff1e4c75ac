// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"cmp"
	"context"
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
	// dialError is the error of the last attempt to open a TCP connection, and tlsError the error of the last TLS
	// handshake. Each is nil after a success. We store these errors because gRPC does not return them.
	dialError, tlsError atomic.Pointer[error]

	// pool.mu guards the following fields. A dropped connection is no longer in the pool.
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
	// The scheme passthrough makes gRPC look up the pod's DNS name at each connection attempt. A single lookup is not
	// enough, because the name of a new Service may not exist yet at the first attempt.
	client, err := grpc.NewClient("passthrough:///"+pod.Address, append(slices.Clip(p.options),
		grpc.WithTransportCredentials(frameLimitedCredentials{transport, &c.frames}), grpc.WithContextDialer(c.dial))...)
	if err != nil {
		return nil, err
	}
	c.client = client
	c.FunctionEvaluatorClient = evaluator.NewFunctionEvaluatorClient(client)
	return c, nil
}

// EvaluateFunction implements evaluator.FunctionEvaluatorClient. Each call raises the number of small HTTP/2 frames
// that the pod may send (see [frameBudget]).
func (c *Conn) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest, options ...grpc.CallOption,
) (*evaluator.EvaluateFunctionResponse, error) {
	c.frames.addCall()
	return c.FunctionEvaluatorClient.EvaluateFunction(ctx, req, options...)
}

func (c *Conn) close() { _ = c.client.Close() }

// Release ends the caller's use of the connection. If broken is true, the pod has failed, and the pool closes the
// connection instead of reusing it.
func (c *Conn) Release(broken bool) { c.pool.releaseConn(c, broken) }

// Connected reports whether the connection is established.
func (c *Conn) Connected() bool { return c.client.GetState() == connectivity.Ready }

// Connect retries until the connection is established. If ctx ends, it returns the error of the last attempt.
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

// notConnected returns the error of the last attempt to connect, for a caller whose ctx has ended.
func (c *Conn) notConnected(ctx context.Context) error {
	if err := cmp.Or(c.dialError.Load(), c.tlsError.Load()); err != nil {
		return *err
	}
	return fmt.Errorf("connect to %s: %w", c.pod.Address, context.Cause(ctx))
}

// dial opens a TCP connection. It starts further attempts while the first attempt gets no answer. This is because a
// node drops packets to a new Service until it has installed the Service's rules. If the connection is refused, dial
// returns an error, and gRPC calls dial again.
func (c *Conn) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := dial.Staggered(ctx, c.pool.cfg.Dial, address, func(err error) { c.dialError.Store(&err) })
	if err == nil {
		c.dialError.Store(nil)
	}
	return conn, err
}
