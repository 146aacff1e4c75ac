// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/slowclient"
)

// listener accepts the connections of an endpoint within its limits. It closes further connections immediately,
// because clients can react to a closed connection better than to a connection without answers.
type listener struct {
	net.Listener
	limits *limits
	tls    *tls.Config   // nil if no client may use TLS
	age    time.Duration // maximum age of connections; 0 means no maximum
	// rejected is called for each new connection that the listener closes because of the limits, and evicted for each
	// idle connection that it closes in favor of a new connection.
	rejected, evicted func(peer string)
	// failed is called for each TLS handshake that fails.
	failed func(peer string, err error)

	// draining is true while the server drains. Clients must then replace all connections.
	draining atomic.Bool
	// lastLate is the time of the last request on a late connection: a connection that began while draining was true.
	lastLate atomic.Pointer[time.Time]
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := l.newConn(accepted)
		stays, evicted := l.limits.admitConn(c)
		if evicted != nil {
			_ = evicted.transport.Close() // without a TLS alert, which may block
			l.evicted(evicted.peer)
		}
		if stays {
			return c, nil
		}
		_ = accepted.Close()
		l.rejected(c.peer)
	}
}

// newConn returns a connection. It varies the maximum age randomly by up to a tenth, so that clients that connected
// together do not reconnect together.
func (l *listener) newConn(accepted net.Conn) *conn {
	transport := newTransport(accepted)
	c := &conn{
		Conn: transport, transport: transport, listener: l, peer: Peer(accepted.RemoteAddr().String()),
		idleSince: time.Now(), late: l.draining.Load(),
	}
	if l.age > 0 {
		c.expires = time.Now().Add(l.age - l.age/10 + rand.N(l.age/5+1)) //nolint:gosec // spreading load needs no secret
	}
	return c
}

// transport is a network connection that is closed if its client does not read fast enough.
type transport struct {
	net.Conn
	meter *slowclient.Meter
	begin []byte // bytes that were read to recognize TLS; Read returns them again
}

func newTransport(conn net.Conn) *transport {
	return &transport{Conn: conn, meter: slowclient.New(func() { _ = conn.Close() })}
}

// Read implements net.Conn.
func (t *transport) Read(p []byte) (int, error) {
	if len(t.begin) > 0 {
		n := copy(p, t.begin)
		t.begin = t.begin[n:]
		return n, nil
	}
	return t.Conn.Read(p)
}

// Write implements net.Conn. It is not safe for concurrent use, because the server writes sequentially.
func (t *transport) Write(p []byte) (int, error) {
	n, inTime, err := t.meter.Write(t.Conn.Write, p)
	if !inTime && err == nil {
		err = net.ErrClosed // the meter closed the connection just after the last write
	}
	return n, err
}

// CloseWrite closes the sending half of a connection.
func (t *transport) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// conn is a connection as the HTTP server sees it: it decrypts TLS, counts in the endpoint's limits, and asks its
// client to replace it when it is old.
type conn struct {
	net.Conn  // transport, or a TLS connection over it: see startTLS
	transport *transport
	listener  *listener
	peer      string

	// limits.mu of the listener guards the following fields.
	counted   bool
	requests  int // running requests
	used      bool
	idleSince time.Time

	// TLS, see tls.go.
	handshake    sync.Once
	handshakeErr error
	secure       atomic.Pointer[tls.Conn]
	state        *tls.ConnectionState // nil without TLS

	// Age, see age.go.
	expires time.Time
	late    bool        // true if the connection began while the server was draining
	replace atomic.Bool // true if the client must be asked to use another connection

	mu     sync.Mutex
	asked  bool
	closed bool
	frames frames      // frames that were written
	timer  *time.Timer // asks the client to use another connection before its certificate expires; may be nil
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.startTLS(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn. If the client must use another connection, Write asks for it before it writes p, so that
// the client sends its next request on the other connection.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.startTLS(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.askToReplace(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	c.frames.parseWritten(p[:n])
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.limits.removeConn(c)
	var err error // close before locking: this interrupts a Write, which holds the lock
	if secure := c.secure.Load(); secure != nil {
		err = secure.Close()
	} else {
		err = c.transport.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	return err
}

// CloseWrite closes the sending half of the connection, so that a client of HTTP/1.1 can read an answer before it has
// sent its whole request.
func (c *conn) CloseWrite() error {
	if secure := c.secure.Load(); secure != nil {
		return secure.CloseWrite()
	}
	return c.transport.CloseWrite()
}

// beginRequest and endRequest count the running requests of the connection.
func (c *conn) beginRequest() {
	c.listener.limits.mu.Lock()
	defer c.listener.limits.mu.Unlock()
	c.requests++
	c.used = true
}

func (c *conn) endRequest() {
	c.listener.limits.mu.Lock()
	defer c.listener.limits.mu.Unlock()
	c.requests--
	c.idleSince = time.Now()
}

// Peer returns the host of an address in net/http's format. Clients with the same host count as one peer.
func Peer(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// connKey is the key of a connection in the contexts of its requests.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}
