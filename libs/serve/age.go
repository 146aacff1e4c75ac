// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"time"
)

// A connection that is old asks its client to use another connection.
//
// HTTP/2 defines the frame GOAWAY for this purpose. Go's server sends it for "Connection: close", but with the number
// of the last request that it has received, and drops requests that are in transit. A client cannot repeat such a
// request if it no longer keeps all of its bytes. Therefore the connection writes the frame itself, with a number
// that is higher than any request's. Thus all requests are answered, and the client closes the connection after its
// last response.

// goAway is a GOAWAY frame. It asks a client to begin no more requests on this connection. All requests that the
// client has begun are answered.
var goAway = []byte{
	0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, // header: length 8, type, flags, stream 0 for the connection
	0x7f, 0xff, 0xff, 0xff, // number of the last request: the highest possible number
	0, 0, 0, 0, // error code: no error
}

// checkAge checks the age of the connection at each request. If the connection is old, the response to r asks the
// client to replace it.
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

// askToReplace writes goAway if the connection is marked to be replaced, once and between two frames. The caller
// holds the lock.
func (c *conn) askToReplace() error {
	if !c.replace.Load() || c.asked || !c.frames.atBoundary() {
		return nil
	}
	c.asked = true
	_, err := c.Conn.Write(goAway)
	return err
}

// expireAt lowers the time at which the connection counts as old to at, the expiry of the client's certificate,
// because later requests would be rejected. It sets a timer, so that the client of an idle connection is asked too.
// Callers must call it before the first request.
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
