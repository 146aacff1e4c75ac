// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// countedConn counts the connections that are open.
type countedConn struct {
	net.Conn
	open   *atomic.Int32
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// TestConnectionsToASilentReplicaAreClosed: each probe of a replica that does not answer makes a connection, and a
// replica that was only stopped accepts them all when it goes on.
func TestConnectionsToASilentReplicaAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		serveAt(t, &network, "10.0.0.1", name)
		silent := serveAt(t, &network, "10.0.0.2", name)
		var open atomic.Int32
		client := testClient(t, func(ctx context.Context, kind, address string) (net.Conn, error) {
			conn, err := network.Dial(ctx, kind, address)
			if err != nil {
				return nil, err
			}
			open.Add(1)
			return &countedConn{Conn: conn, open: &open}, nil
		}, "10.0.0.1", "10.0.0.2")
		client.calls(t, 4)
		silent.SetSilent(true)
		client.calls(t, 20)
		silent.SetSilent(false)
		client.calls(t, 10)
		if n := open.Load(); n != 2 {
			t.Errorf("%d connections are open, want one to each replica", n)
		}
	})
}
