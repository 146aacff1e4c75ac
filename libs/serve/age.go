// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"time"
)

// A connection that is old asks its client to use another connection.
//
// HTTP/2 has a frame for that. Go's server sends it for "Connection: close", but with the number of the last request
// that it has seen, and drops requests that are on their way: clients cannot repeat those, once they have sent more
// than they keep. So the connection writes the frame itself, with a number that no request has. All requests are
// answered, and the client closes the connection after its last response.

// goAway asks a client to begin no more requests on this connection. All requests that it has begun are answered.
var goAway = []byte{
	0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, // header: 8 bytes follow, for the connection
	0x7f, 0xff, 0xff, 0xff, // the last request: the highest number that there is
	0, 0, 0, 0, // no error
}

// checkAge marks an old connection, so that the response to r asks its client to replace it.
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

// askToReplace asks the client to use another connection if it must. The caller holds the lock.
func (c *conn) askToReplace() error {
	if !c.replace.Load() || c.asked || !c.frames.atBoundary() {
		return nil
	}
	c.asked = true
	_, err := c.Conn.Write(goAway)
	return err
}

// expireAt sets the time at which the connection is old, even if it is idle: a request after the expiry of the client's
// certificate would be rejected. It must be called before the first request.
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
			_ = c.askToReplace() // the server also detects a broken connection
		})
	}
}
