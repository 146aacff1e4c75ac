// SPDX-License-Identifier: Apache-2.0

// Package pipenet contains a network in memory, for tests in virtual time. A test can make a host silent, as if its
// process were stopped or the network were partitioned, and can kill a host.
package pipenet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Network is a network of hosts in memory, with addresses as host:port. The zero Network contains no hosts.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*Host
}

// Host is a server in a Network.
type Host struct {
	address string
	silent  atomic.Bool
	dead    atomic.Bool
	accept  chan net.Conn
	closed  chan struct{}

	mu    sync.Mutex
	conns []*conn
}

// Serve adds a host at the address to the network. Until the test ends, the host serves handler over HTTP/2 without
// encryption.
func (n *Network) Serve(t testing.TB, address string, handler http.Handler) *Host {
	t.Helper()
	h := &Host{address: address, accept: make(chan net.Conn), closed: make(chan struct{})}
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

// Dial connects to a host of the network. It also connects to a silent host, because a kernel accepts connections
// even for a stopped process.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	h := n.hosts[address]
	n.mu.Unlock()
	if h == nil || h.dead.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	server := h.joinConn(far)
	select {
	case h.accept <- server:
		return h.joinConn(near), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SetSilent makes the host silent, or ends its silence. While a host is silent, its connections hold data back in
// both directions. When the silence ends, they forward the data.
func (h *Host) SetSilent(silent bool) {
	h.silent.Store(silent)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.wakePump()
	}
}

// Kill closes all connections of the host. The host then rejects new connections.
func (h *Host) Kill() {
	h.dead.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

// Revive ends the effect of Kill, so that the host accepts connections again.
func (h *Host) Revive() { h.dead.Store(false) }

// Accept implements net.Listener.
func (h *Host) Accept() (net.Conn, error) {
	select {
	case c := <-h.accept:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *Host) Close() error {
	select {
	case <-h.closed:
		return errors.New("closed twice")
	default:
		close(h.closed)
		return nil
	}
}

// Addr implements net.Listener.
func (h *Host) Addr() net.Addr { return address(h.address) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
