// SPDX-License-Identifier: Apache-2.0

// Package cutproxy contains a proxy that forwards connections to a server in tests, and breaks them on request.
package cutproxy

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections to a target. Tests call Cut to break the connections.
type Proxy struct {
	// Address is the proxy's address, as host:port.
	Address string

	mu    sync.Mutex
	conns []net.Conn
}

// New returns a proxy for the server at target. The proxy listens on a free port, and stops after the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	return NewAt(t, "127.0.0.1:0", target)
}

// NewAt returns a proxy like [New], but the proxy listens on the given address.
func NewAt(t testing.TB, address, target string) *Proxy {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Errorf("open %s: %v", address, err)
		return nil
	}
	p := &Proxy{Address: listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			p.forwardConn(t.Context(), &running, in, target)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		running.Wait()
	})
	return p
}

// forwardConn connects to the target and forwards bytes between the client and the target, in both directions.
func (p *Proxy) forwardConn(ctx context.Context, running *sync.WaitGroup, in net.Conn, target string) {
	out, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		_ = in.Close()
		return
	}
	p.addConn(in, out)
	// We close only the ended connection, because clients close connections that they no longer need.
	end := func() {
		_ = in.Close()
		_ = out.Close()
	}
	running.Go(func() { defer end(); _, _ = io.Copy(in, out) })
	running.Go(func() { defer end(); _, _ = io.Copy(out, in) })
}

func (p *Proxy) addConn(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
}

// Cut breaks all open connections. The proxy still accepts and forwards new connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
