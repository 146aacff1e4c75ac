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
	// dialError is the error of the last attempt to connect, including TLS. It is nil after a success.
	dialError atomic.Pointer[error]

	// The pool's lock guards these.
	users   int
	used    time.Time
	dropped bool
}

func (p *Pool) newConn(pod Pod) (*Conn, error) {
	c := &Conn{pool: p, pod: pod}
	transport, err := c.podCredentials(p.cfg.Identity)
	if err != nil {
		return nil, err
	}
	// Each attempt resolves the name again, because a Service's name may be new.
	client, err := grpc.NewClient("passthrough:///"+pod.Address, append(slices.Clip(p.options),
		grpc.WithTransportCredentials(framed{transport}), grpc.WithContextDialer(c.dial))...)
	if err != nil {
		return nil, err
	}
	c.client, c.FunctionEvaluatorClient = client, evaluator.NewFunctionEvaluatorClient(client)
	return c, nil
}

func (c *Conn) close() { _ = c.client.Close() }

// Release ends a use of the connection. The connection of a broken pod is not reused.
func (c *Conn) Release(broken bool) { c.pool.releaseConn(c, broken) }

// Connected reports whether the connection is established.
func (c *Conn) Connected() bool { return c.client.GetState() == connectivity.Ready }

// Connect returns when the connection is established. It retries until ctx ends, and then returns the error of the last
// attempt.
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

// dial opens a connection to address, including the address of a Service whose rules the node does not have yet. A
// refused connection is an error. Retries after it are up to the caller.
func (c *Conn) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := dial.Staggered(ctx, c.dialOnce, address)
	if err == nil && c.pod.ID == "" { // otherwise the handshake may still fail
		c.dialError.Store(nil)
	}
	return conn, err
}

// dialOnce attempts to connect, and stores the error.
func (c *Conn) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // canceled because another attempt succeeded
		c.dialError.Store(&err)
	}
	return conn, err
}
