// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"time"
)

// A server sends the HTTP/2 frame GOAWAY to make a client use another connection. Go's server sends it for
// "Connection: close", but with the number of the last request that it has received, and drops requests that are in
// transit. A client cannot repeat such a request if it no longer keeps all of its bytes. Therefore we write the
// frame ourselves, with a number higher than any request's, so that all requests are answered.

// goAway is an HTTP/2 GOAWAY frame. The client then sends new requests on another connection, and still receives
// the responses to all requests that it has sent.
var goAway = []byte{
	0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, // header: length 8, type, flags, stream 0 for the connection
	0x7f, 0xff, 0xff, 0xff, // number of the last request: the highest possible number
	0, 0, 0, 0, // error code: no error
}

// checkAge requests the client to open a new connection if this connection is too old or the server is shutting
// down. The request is sent with the response to r.
func (c *conn) checkAge(w http.ResponseWriter, r *http.Request) {
	if c.expires.IsZero() {
		return
	}
	if c.late && !isProbe(r.URL.Path) {
		c.listener.lastLate.Store(new(time.Now()))
	}
	switch {
	case !c.listener.draining.Load() && time.Now().Before(c.expires):
	case r.ProtoMajor == 2:
		c.replace.Store(true)
	default:
		w.Header().Set("Connection", "close")
	}
}

// askToReplace writes the GOAWAY frame if the client must open a new connection. It writes the frame only once, and
// only between two other frames. The caller holds the lock.
func (c *conn) askToReplace() error {
	if !c.replace.Load() || c.asked || !c.frames.atBoundary() {
		return nil
	}
	c.asked = true
	_, err := c.Conn.Write(goAway)
	return err
}

// expireAt makes the connection count as old from the given time, which is before the client's certificate expires,
// because later requests would be rejected. A timer then sends the GOAWAY frame even if the connection is idle.
// Callers must call expireAt before the first request.
func (c *conn) expireAt(at time.Time, http2 bool) {
	if at.Before(c.expires) {
		c.expires = at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if http2 && !c.closed {
		c.timer = time.AfterFunc(time.Until(at), func() {
			c.replace.Store(true)
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.askToReplace() // we ignore an error, because the server also detects a broken connection
		})
	}
}
