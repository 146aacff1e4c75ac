// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// agingListener accepts connections that grow old.
type agingListener struct {
	net.Listener
	age time.Duration
	// draining is set when the server is about to stop: all connections count as old then.
	draining atomic.Bool
	// lastLate is when the last request came on a connection that began while draining.
	lastLate atomic.Pointer[time.Time]
}

// Accept implements net.Listener. Ages differ by up to a tenth, so that clients that
// came together do not leave together.
func (l *agingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	age := l.age - l.age/10 + rand.N(l.age/5+1) //nolint:gosec // spreading load needs no secret
	aging := &agingConn{Conn: conn, old: time.Now().Add(age), late: l.draining.Load()}
	if secure, ok := conn.(*secureConn); ok {
		secure.established = aging.expire
	}
	return aging, nil
}

// agingConn is a connection that asks its client to use another one when it is old.
//
// HTTP/2 has a frame for that. Go's server sends it for "Connection: close", but with
// the number of the last request that it has seen, and drops requests that are on their
// way: clients cannot repeat those, once they have sent more than they keep. So the
// connection writes the frame itself, with a number that no request has. All
// requests are answered, and the client closes the connection after its last response.
type agingConn struct {
	net.Conn
	old     time.Time
	late    bool        // it began while the server was draining
	replace atomic.Bool // the client has to be asked

	mu     sync.Mutex
	asked  bool
	closed bool
	frames frames      // written so far
	timer  *time.Timer // has the client asked before its certificate expires, or nil
}

// goAway asks a client to begin no more requests on this connection. All requests that it
// has begun are answered.
var goAway = []byte{
	0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, // header: 8 bytes follow, for the connection
	0x7f, 0xff, 0xff, 0xff, // the last request: the highest number that there is
	0, 0, 0, 0, // no error
}

// Write implements net.Conn. The client is asked before it gets its answer, so that its next request is
// on another connection.
func (c *agingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ask(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	c.frames.passed(p[:n])
	return n, err
}

// ask asks the client to use another connection if it has to. Its caller holds the lock.
func (c *agingConn) ask() error {
	if !c.replace.Load() || c.asked || !c.frames.between() {
		return nil
	}
	c.asked = true
	_, err := c.Conn.Write(goAway)
	return err
}

// expire has the connection grow old at a time, also while it is not used: a request that comes after
// the client's certificate has expired would be rejected. It is called before the first request.
func (c *agingConn) expire(at time.Time, http2 bool) {
	if at.Before(c.old) {
		c.old = at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if http2 && !c.closed {
		c.timer = time.AfterFunc(time.Until(at), func() {
			c.replace.Store(true)
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.ask() // the server notices a broken connection too
		})
	}
}

// Close implements net.Conn.
func (c *agingConn) Close() error {
	err := c.Conn.Close() // ends a Write that holds the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	return err
}

// CloseWrite lets a client of HTTP/1.1 read an answer that came before the end of its
// request.
func (c *agingConn) CloseWrite() error { return closeWrite(c.Conn) }

// connKey is the key of a connection in the contexts of its requests.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// handler has next's responses ask clients to replace connections that are old.
func (l *agingListener) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connKey{}).(*agingConn)
		if ok && conn.late && !isProbe(r.URL.Path) {
			l.lastLate.Store(new(time.Now()))
		}
		switch {
		case !ok || !l.draining.Load() && time.Now().Before(conn.old):
		case r.ProtoMajor == 2:
			conn.replace.Store(true)
		default:
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
