// SPDX-License-Identifier: Apache-2.0

// Package pipenet contains a network in memory, for tests in virtual time. A test can kill a host. It can also make a
// host silent, as if the host's process were stopped or the network were partitioned.
package pipenet

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc/test/bufconn"
)

// Network is a network of hosts in memory. The address of a host is host:port. The zero Network contains no hosts.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*Host
}

// Host is a server in a Network.
type Host struct {
	*bufconn.Listener
	dead atomic.Bool

	mu     sync.Mutex
	change *sync.Cond // signals changes of silent and of the state of connections
	silent bool
	conns  []*conn
}

// bufferBytes is the size of a connection's buffer in each direction, similar to the kernel's socket buffers.
const bufferBytes = 64 << 10

// Serve adds a host with the given address. Until the test ends, the host serves handler over HTTP/2 without
// encryption.
func (n *Network) Serve(t testing.TB, address string, handler http.Handler) *Host {
	t.Helper()
	h := &Host{Listener: bufconn.Listen(bufferBytes)}
	h.change = sync.NewCond(&h.mu)
	n.mu.Lock()
	if n.hosts == nil {
		n.hosts = make(map[string]*Host)
	}
	n.hosts[address] = h
	n.mu.Unlock()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(h) })
	t.Cleanup(func() {
		h.Kill()
		_ = server.Close()
		serving.Wait()
	})
	return h
}

// Dial connects to a host of the network, even if the host is silent. This is because a silent host simulates a stopped
// process, for which the kernel still accepts connections.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	h := n.hosts[address]
	n.mu.Unlock()
	if h == nil || h.dead.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, err := h.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return h.addConn(near), nil
}

// Accept implements net.Listener.
func (h *Host) Accept() (net.Conn, error) {
	far, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return h.addConn(far), nil
}

// SetSilent makes the host silent, or ends its silence. While the host is silent, its connections deliver no data.
// When the silence ends, the connections deliver the delayed data.
func (h *Host) SetSilent(silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = silent
	h.change.Broadcast()
}

// Kill closes all connections of the host. The host then rejects new connections.
func (h *Host) Kill() {
	h.dead.Store(true)
	h.mu.Lock()
	conns := slices.Clone(h.conns)
	h.conns = nil
	h.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// Revive makes a killed host accept connections again.
func (h *Host) Revive() { h.dead.Store(false) }

// conn is one side of a connection to a host. While a test keeps the host silent, reads on the connection block.
type conn struct {
	net.Conn

	host   *Host
	closed bool // guarded by the host's mu
}

func (h *Host) addConn(side net.Conn) *conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &conn{Conn: side, host: h}
	h.conns = append(h.conns, c)
	return c
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	for c.host.silent && !c.closed {
		c.host.change.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.host.mu.Lock()
	c.closed = true
	c.host.change.Broadcast()
	c.host.mu.Unlock()
	return c.Conn.Close()
}
