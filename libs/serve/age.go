// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"time"
)

// A server sends the HTTP/2 frame GOAWAY to make a client use another connection. If a handler sets "Connection:
// close", Go's server sends this frame with the number of the last request that it has received. It then drops
// requests that are in transit. A client cannot repeat such a request if it no longer keeps all of its bytes: grpc-go
// keeps 256 KiB. Therefore we write the frame ourselves, with a number higher than any request's, so that the server
// answers all requests, as RFC 9113 (section 6.8) recommends.
//
// Warning: this file writes a frame below net/http, which has no supported way to send a graceful GOAWAY. It relies on
// net/http writing whole frames in turn (TestConnectionsAreReplacedWithoutFailures). TestNetHTTPStillDropsRequests
// fails when net/http no longer needs this. grpc-go's server with MaxConnectionAge is no alternative, because its port
// serves neither Connect nor gRPC-Web nor HTTP/1.1. Without a maximum age, new replicas would get no callers.

// goAway is an HTTP/2 GOAWAY frame. After this frame, the client sends new requests on another connection, and
// still receives the responses to all requests that it has sent.
var goAway = []byte{
	0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, // header: length 8, type, flags, stream 0 for the connection
	0x7f, 0xff, 0xff, 0xff, // number of the last request: the highest possible number
	0, 0, 0, 0, // error code: none
}

// checkAge makes the client reconnect if the connection is too old or the server is shutting down. HTTP/2 clients
// receive a GOAWAY frame, and HTTP/1.1 clients receive the response header "Connection: close". checkAge ignores a
// connection without a maximum age, which net/http closes at a shutdown.
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

// askToReplace sends the GOAWAY frame if the client must open a new connection. It sends the frame only once. If
// another frame is only partly written, it does nothing, and a later call sends the GOAWAY frame. Callers must hold mu.
func (c *conn) askToReplace() error {
	if !c.replace.Load() || c.asked || !c.frames.atBoundary() {
		return nil
	}
	c.asked = true
	_, err := c.Conn.Write(goAway)
	return err
}

// expireAt makes the client reconnect at the given time, which is before the client's certificate expires. Otherwise,
// the server would reject later requests on this connection. For HTTP/2, a timer sends the GOAWAY frame even if the
// connection is idle. Callers must call expireAt before the first request.
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

// Constants of the HTTP/2 frame format (RFC 9113, section 4.1).
const (
	frameHeaderBytes  = 9
	frameHeaders      = 0x1
	frameGoAway       = 0x7
	frameContinuation = 0x9
	flagEndHeaders    = 0x4
)

// frames parses the HTTP/2 frames that the server writes to a connection. It finds the positions between frames where
// the server may insert a GOAWAY frame. The zero value is ready for use at the first byte of a connection.
type frames struct {
	header [frameHeaderBytes]byte
	have   int  // number of bytes already in header
	rest   int  // bytes of the frame's content still to come
	begun  bool // true once the first frame, the server's settings, has begun
	open   bool // true if a sequence of header frames is incomplete
}

// parseWritten parses the next bytes that the server has written.
func (f *frames) parseWritten(p []byte) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(p))
			f.rest -= n
			p = p[n:]
			continue
		}
		n := copy(f.header[f.have:], p)
		f.have += n
		p = p[n:]
		if f.have == frameHeaderBytes {
			f.parseHeader()
		}
	}
}

func (f *frames) parseHeader() {
	f.have, f.begun = 0, true
	f.rest = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	if kind := f.header[3]; kind == frameHeaders || kind == frameContinuation {
		f.open = f.header[4]&flagEndHeaders == 0
	}
}

// atBoundary reports whether a frame may be inserted now. A frame must not be inserted within another frame or within
// a sequence of header frames.
func (f *frames) atBoundary() bool { return f.begun && f.have == 0 && f.rest == 0 && !f.open }
