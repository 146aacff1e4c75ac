// SPDX-License-Identifier: Apache-2.0

package pipenet

import (
	"context"
	"net"
)

// Pipes is a listener for a single host in memory, whose connections have no buffers. Tests may also send their own
// connections to the channel Conns.
type Pipes struct {
	Conns  chan net.Conn
	closed chan struct{}
}

// Listen returns a listener. Its method DialContext opens connections to it.
func Listen() *Pipes { return &Pipes{Conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.Conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error { close(p.closed); return nil }

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{} }

// DialContext connects to the listener. It is for http.Transport.
func (p *Pipes) DialContext(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.Conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
