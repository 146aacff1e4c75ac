// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"fmt"
	"math"
	"net/http"

	"connectrpc.com/connect"
)

// mount is how a handler is served. All handlers of a port go through it, so that none is
// without limits.
type mount struct {
	name string
	// requestBytes and responseBytes bound each message that is read and sent.
	requestBytes, responseBytes int
	// flushes is set for handlers of streams, whose messages are sent one by one.
	flushes bool
	// idles is set for streams whose client may be silent for as long as it likes.
	// Their requestBytes are all that an incomplete message holds.
	idles bool
	// options are those of this handler, besides its limits.
	options []connect.HandlerOption
}

// on adds a handler to mux. handler gets the options that hold the limits.
func (m mount) on(mux *http.ServeMux, handler func(...connect.HandlerOption) (string, http.Handler)) error {
	if m.requestBytes <= 0 || m.responseBytes <= 0 {
		return fmt.Errorf("serve %s: its messages have no limit: set MaxRequestBytes and MaxResponseBytes", m.name)
	}
	path, h := handler(append([]connect.HandlerOption{
		connect.WithReadMaxBytes(m.requestBytes),
		connect.WithSendMaxBytes(m.responseBytes),
		// A compressed message takes a thousand times its size in memory. It is rejected
		// by uncompressed, and not inflated in any case. Responses are not compressed
		// either: callers are near, and compressing megabytes takes longer than sending.
		connect.WithCompression("gzip", nil, nil),
		connect.WithCompressMinBytes(math.MaxInt),
	}, m.options...)...)
	h = uncompressed(h)
	if !m.idles {
		h = paced(m.requestBytes, h)
	}
	if !m.flushes {
		h = atOnce(h)
	}
	mux.Handle(path, h)
	return nil
}

// atOnce has responses sent when they are complete. Connect flushes a response after
// its message and again after its trailers if it can, which wakes the client twice.
func atOnce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(unflushed{w}, r)
	})
}

// unflushed is a response without http.Flusher, whose deadlines can be set.
type unflushed struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w unflushed) Unwrap() http.ResponseWriter { return w.ResponseWriter }
