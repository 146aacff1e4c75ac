// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// handshakeTimeout bounds a TLS handshake.
	handshakeTimeout = 10 * time.Second
	// recordHandshake is the first byte of a TLS connection. No request without TLS begins with it.
	recordHandshake = 0x16
	// longestSecure is how old a connection with TLS becomes at an endpoint without a limit: what a
	// certificate proves does not hold for ever.
	longestSecure = time.Hour
)

// secureListener accepts connections with TLS, and without: handlers decide whom they answer.
type secureListener struct {
	net.Listener
	config *tls.Config
	failed func(peer string, err error)
}

// Accept implements net.Listener. The goroutine that serves the connection does the handshake.
func (l *secureListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &secureConn{Conn: conn, listener: l}, nil
}

// secureConn is a connection whose client decides whether to use TLS, by the first byte. The HTTP
// server sees what was decrypted: it is the frames of HTTP/2 there that age.go writes between.
type secureConn struct {
	net.Conn // what arrived
	listener *secureListener
	begun    sync.Once
	err      error
	plain    net.Conn // what was decrypted, or came without TLS
	secure   atomic.Pointer[tls.Conn]
	state    *tls.ConnectionState // nil without TLS
	// established, if not nil, gets the time at which the client has to use another connection, and
	// whether it speaks HTTP/2.
	established func(renew time.Time, http2 bool)
}

// begin returns after the handshake.
func (c *secureConn) begin() error {
	c.begun.Do(func() {
		if c.err = c.handshake(); c.err != nil && c.plain != nil {
			c.listener.failed(Peer(c.RemoteAddr().String()), c.err)
		}
	})
	return c.err
}

// handshake finds out whether the client uses TLS, and sets up what it uses.
func (c *secureConn) handshake() error {
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.Conn, first); err != nil {
		return err
	}
	c.plain = &begunConn{Conn: c.Conn, begin: first}
	if first[0] != recordHandshake {
		return nil
	}
	secure := tls.Server(c.plain, c.listener.config)
	c.plain = secure
	c.secure.Store(secure)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.state = new(secure.ConnectionState())
	if certs := c.state.PeerCertificates; len(certs) > 0 && c.established != nil {
		c.established(time.Now().Add(time.Until(certs[0].NotAfter)*3/4), c.state.NegotiatedProtocol == "h2")
	}
	return nil
}

// Read implements net.Conn.
func (c *secureConn) Read(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	return c.plain.Read(p)
}

// Write implements net.Conn.
func (c *secureConn) Write(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	return c.plain.Write(p)
}

// Close implements net.Conn.
func (c *secureConn) Close() error {
	if secure := c.secure.Load(); secure != nil {
		return secure.Close()
	}
	return c.Conn.Close()
}

// CloseWrite lets a client of HTTP/1.1 read an answer that came before the end of its request.
func (c *secureConn) CloseWrite() error {
	if secure := c.secure.Load(); secure != nil {
		return secure.CloseWrite()
	}
	return closeWrite(c.Conn)
}

// begunConn is a connection of which some bytes were read already.
type begunConn struct {
	net.Conn
	begin []byte
}

// Read implements net.Conn.
func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// secured has next find the TLS state of its connection in each request.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := secureOf(r); c != nil && c.state != nil {
			r = r.WithContext(r.Context()) // a copy: its server goes on using r
			r.TLS = c.state
		}
		next.ServeHTTP(w, r)
	})
}

// secureOf returns the connection of a request, nil at endpoints without TLS.
func secureOf(r *http.Request) *secureConn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if aging, ok := conn.(*agingConn); ok {
		conn = aging.Conn
	}
	c, _ := conn.(*secureConn)
	return c
}
