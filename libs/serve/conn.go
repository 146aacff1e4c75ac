// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/slowclient"
)

// listener accepts the connections of a port up to its limits. It closes further connections immediately, because
// clients can handle a closed connection better than an open connection without answers.
type listener struct {
	net.Listener
	limits *limits
	tls    *tls.Config   // nil if no client may use TLS
	age    time.Duration // maximum age of connections; 0 means no maximum
	log    *slog.Logger
	lines  LogLimiter // limits the log lines of each kind of event separately

	// draining is true while the server still answers requests during its shutdown. Clients must then reconnect.
	draining atomic.Bool
	// lastLate is the time of the last request on a connection that was opened during the shutdown. Such a request shows
	// that load balancers still send clients to this server.
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
			_ = evicted.transport.Close() // sends no TLS alert, which may block
			l.lines.Limit("evicted", func(count int) {
				l.log.Warn("idle connections closed: too many are open", "peer", evicted.peer, "count", count)
			})
		}
		if stays {
			return c, nil
		}
		_ = accepted.Close()
		l.lines.Limit("rejected", func(count int) {
			l.log.Warn("connections rejected: too many are open", "peer", c.peer, "count", count)
		})
	}
}

// newConn prepares an accepted connection. The connection's maximum age varies randomly by up to a tenth, so that
// clients that connected at the same time do not all reconnect at the same time.
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

// transport is a TCP connection that closes itself if the client reads too slowly.
type transport struct {
	net.Conn
	meter *slowclient.Meter
	begin []byte // bytes that we read to recognize TLS; Read returns them again
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

// Write implements net.Conn. It does not support concurrent calls, because the HTTP server writes sequentially.
func (t *transport) Write(p []byte) (int, error) {
	n, inTime, err := t.meter.Write(t.Conn.Write, p)
	if !inTime && err == nil {
		err = net.ErrClosed // the meter closed the connection right after the last write
	}
	return n, err
}

// CloseWrite closes the sending half of the TCP connection.
func (t *transport) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// conn is a client's connection to the HTTP server. It decrypts TLS, counts running requests, and makes the client
// open a new connection when this connection is too old.
type conn struct {
	net.Conn  // transport, or a TLS connection over it: see startTLS
	transport *transport
	listener  *listener
	peer      string

	// The following fields are guarded by listener.limits.mu.
	counted   bool
	requests  int // number of running requests, without health checks
	used      bool
	idleSince time.Time

	// TLS, see startTLS.
	handshake    sync.Once
	handshakeErr error
	secure       atomic.Pointer[tls.Conn]
	state        *tls.ConnectionState // nil without TLS

	// Age, see age.go.
	expires time.Time
	late    bool        // true if the connection was accepted while the server was draining
	replace atomic.Bool // true if the client must move to another connection

	mu     sync.Mutex
	asked  bool
	closed bool
	frames frames      // parser of the frames written so far
	timer  *time.Timer // sends GOAWAY before the client's certificate expires; may be nil
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.startTLS(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn. If the client must reconnect, Write sends the GOAWAY frame before the data. The client
// then sends its next request on a new connection.
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
	// We close before locking, to interrupt a Write that holds the lock.
	var err error
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

// CloseWrite closes the sending direction of the connection. An HTTP/1.1 client that has not sent its whole request
// can then still read the response.
func (c *conn) CloseWrite() error {
	if secure := c.secure.Load(); secure != nil {
		return secure.CloseWrite()
	}
	return c.transport.CloseWrite()
}

// Peer returns an address without its port, so that limits and logs treat all connections from a host as the same
// peer.
func Peer(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// connKey is the context key for the connection of a request.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

const (
	// handshakeTimeout is the timeout of a TLS handshake.
	handshakeTimeout = 10 * time.Second
	// recordHandshake is the first byte that clients with TLS send. Clients without TLS never begin with this byte.
	recordHandshake = 0x16
	// maxSecureAge is the default of MaxConnectionAge for endpoints with TLS. Their connections have a maximum age
	// because certificates expire.
	maxSecureAge = time.Hour
)

// startTLS performs the TLS handshake if the client's first byte shows that the client uses TLS. Later calls return the
// result of the first call. Read and Write call startTLS. If Accept called it, a slow client would delay other clients.
func (c *conn) startTLS() error {
	if c.listener.tls == nil {
		return nil
	}
	c.handshake.Do(func() {
		first := make([]byte, 1)
		if _, c.handshakeErr = io.ReadFull(c.transport, first); c.handshakeErr != nil {
			return
		}
		c.transport.begin = first
		if first[0] != recordHandshake {
			return
		}
		if c.handshakeErr = c.decrypt(); c.handshakeErr != nil {
			c.listener.lines.Limit("handshake", func(count int) {
				c.listener.log.Warn("TLS handshake failed", "peer", c.peer, "count", count, "error", c.handshakeErr)
			})
		}
	})
	return c.handshakeErr
}

// decrypt performs the TLS handshake. It also makes the client reconnect before the client's certificate expires.
func (c *conn) decrypt() error {
	secure := tls.Server(c.Conn, c.listener.tls)
	c.Conn = secure
	c.secure.Store(secure)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.state = new(secure.ConnectionState())
	if certs := c.state.PeerCertificates; len(certs) > 0 {
		c.expireAt(time.Now().Add(time.Until(certs[0].NotAfter)*3/4), c.state.NegotiatedProtocol == "h2")
	}
	return nil
}
