// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/krm-function-runner/function-runner/libs/pace"
)

// Limits of a connection. What a server holds for one client at most is the product of
// these with the client's connections.
const (
	// ReceiveWindow is how much of a request the server buffers before its handler reads
	// it: large enough that a resource list of some megabytes hardly waits for
	// acknowledgements inside a cluster, and small since requests that wait for memory
	// hold that much each.
	ReceiveWindow = 128 << 10
	// ConnReceiveWindow is the same for all requests of a connection.
	ConnReceiveWindow = 2 << 20
	// MaxWindow is the largest window that net/http permits, and minConnWindow the smallest of a connection. It uses
	// defaults in the place of other sizes.
	MaxWindow     = 4<<20 - 1
	minConnWindow = 64 << 10
	// maxHeaderBytes bounds the headers of a request: some ids, and a token.
	maxHeaderBytes = 16 << 10
	// maxReadFrameBytes bounds the frames of HTTP/2, which the server reads whole.
	maxReadFrameBytes = 64 << 10
)

// Windows are how much of its requests a server buffers before their handlers read it. A client that has sent as much
// waits until it gets word, which takes a round trip.
type Windows struct{ Request, Connection int }

// check returns an error if net/http does not permit w.
func (w Windows) check() error {
	if w.Request <= 0 || w.Request > MaxWindow || w.Connection < minConnWindow || w.Connection > MaxWindow {
		return fmt.Errorf("windows of %d and %d bytes are not between 1 or %d and %d", w.Request, w.Connection,
			minConnWindow, MaxWindow)
	}
	return nil
}

// DefaultWindows are those of an endpoint that has none of its own.
var DefaultWindows = Windows{Request: ReceiveWindow, Connection: ConnReceiveWindow}

// Defaults of an endpoint.
const (
	// DefaultMaxConnections is far above what the callers of a service need: each has one
	// connection, or a few.
	DefaultMaxConnections = 256
	// DefaultMaxConnectionsPerPeer leaves connections for others when one address, which
	// may be that of many callers behind a proxy, takes all that it can get.
	DefaultMaxConnectionsPerPeer = 64
	// DefaultMaxStreams is the number of requests at a time on one connection of HTTP/2.
	// Clients wait or make another connection beyond.
	DefaultMaxStreams = 250
)

// limitedListener accepts as many connections as its limits admit, and closes further ones
// at once: a client learns more from that than from a connection that never answers.
type limitedListener struct {
	net.Listener
	limits *limits
	// rejected is called with the peer of each connection that is closed, and stranger likewise if it is one that
	// others need.
	rejected, stranger func(peer string)
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		conn := newLimitedConn(accepted, l)
		stays, leaves := l.limits.enter(conn)
		if leaves != nil {
			_ = leaves.Close()
			l.stranger(leaves.peer)
		}
		if stays {
			conn.await()
			return conn, nil
		}
		_ = conn.Close()
		l.rejected(conn.peer)
	}
}

// limitedConn is a connection that is counted, and closed if its client does not read
// what the server writes.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	peer     string
	began    time.Time
	meter    *pace.Meter
	// admitted is set once the client is known.
	admitted atomic.Bool
	// counted is where the connection is counted, nil if it is not. The lock of the limits guards it.
	counted *quota
	life    *time.Timer // of a stranger, or nil
}

func newLimitedConn(conn net.Conn, l *limitedListener) *limitedConn {
	c := &limitedConn{Conn: conn, listener: l, peer: Peer(conn.RemoteAddr().String()), began: time.Now()}
	c.meter = pace.New(func() { _ = c.Close() })
	return c
}

// await begins the life of a stranger's connection, before it is used.
func (c *limitedConn) await() {
	if c.listener.limits.restricted {
		c.life = time.AfterFunc(strangerLife, c.expire)
	}
}

// expire closes the connection if it is a stranger's.
func (c *limitedConn) expire() {
	if c.listener.limits.expel(c) {
		_ = c.Close()
	}
}

// admit has the connection be one of a known client. It closes the connection, and returns false, if it cannot be.
func (c *limitedConn) admit() bool {
	if c.admitted.Load() {
		return true
	}
	stays, full := c.listener.limits.admit(c)
	switch {
	case stays:
		c.admitted.Store(true)
		c.life.Stop()
		return true
	case full:
		c.listener.rejected(c.peer)
	}
	_ = c.Close()
	return false
}

// Write implements net.Conn. The server writes one thing after the other.
func (c *limitedConn) Write(p []byte) (int, error) {
	n, inTime, err := c.meter.Write(c.Conn.Write, p)
	if !inTime && err == nil {
		err = net.ErrClosed // in the last moment
	}
	return n, err
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.listener.limits.leave(c)
	if c.life != nil {
		c.life.Stop()
	}
	return c.Conn.Close()
}

// CloseWrite lets a client of HTTP/1.1 read an answer that came before the end of its
// request.
func (c *limitedConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends the sending half of a connection that has one.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
