// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/slowclient"
)

// errSlowReader is the error that a handler gets if its client reads the response too slowly.
var errSlowReader = fault.New(fault.DeadlineExceeded,
	"the response was given up: its client reads less than %d bytes per second and pauses for more than %v",
	slowclient.BytesPerSecond, slowclient.Grace)

// handler wraps the HTTP handler of a port. It sets r.TLS, limits the number of running requests, makes clients
// replace old connections, and aborts responses that clients read too slowly.
type handler struct{ endpoint http.Handler }

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		panic("serve: a request without its connection")
	}
	limits, probe := c.listener.limits, isProbe(r.URL.Path)
	if !limits.beginRequest(c, probe) {
		c.listener.lines.Limit("busy", func(count int) {
			c.listener.log.Warn("requests rejected: too many are running", "peer", c.peer, "count", count)
		})
		w.WriteHeader(http.StatusTooManyRequests) // no body, because a slow client could make the server wait
		return
	}
	defer limits.endRequest(c, probe)
	c.checkAge(w, r)
	if c.state != nil {
		r = r.WithContext(r.Context()) // copy, because the server still uses its own request
		r.TLS = c.state
	}
	if r.ProtoMajor < 2 { // for HTTP/1.1, type transport checks the reading rate
		h.endpoint.ServeHTTP(w, r)
		return
	}
	// We measure the reading rate per HTTP/2 stream, because a client can stop reading a single stream.
	stream := http.NewResponseController(w)
	paced := newPacedWriter(w, stream)
	h.endpoint.ServeHTTP(paced, r)
	if paced.wrote {
		paced.Flush() // keeps the request running until the client has read the response
	}
}

// pacedWriter is an http.ResponseWriter that fails if the client reads the response too slowly.
type pacedWriter struct {
	http.ResponseWriter
	stream *http.ResponseController
	meter  *slowclient.Meter
	wrote  bool // true if the response has a body
}

func newPacedWriter(w http.ResponseWriter, stream *http.ResponseController) *pacedWriter {
	reset := func() { _ = stream.SetWriteDeadline(time.Unix(1, 0)) }
	return &pacedWriter{ResponseWriter: w, stream: stream, meter: slowclient.New(reset)}
}

// Write implements io.Writer. If the client is too slow, Write resets the HTTP/2 stream and returns an error.
func (w *pacedWriter) Write(p []byte) (int, error) {
	w.wrote = true
	n, inTime, err := w.meter.Write(w.ResponseWriter.Write, p)
	if !inTime {
		err = errSlowReader
	}
	return n, err
}

// Flush implements http.Flusher. It ignores errors, because the next Write fails too.
func (w *pacedWriter) Flush() {
	w.meter.Do(func() int {
		_ = w.stream.Flush()
		return 0
	})
}

// Unwrap lets an http.ResponseController find the wrapped http.ResponseWriter.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
