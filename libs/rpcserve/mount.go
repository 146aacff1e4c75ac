// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"fmt"
	"math"
	"net/http"

	"connectrpc.com/connect"
)

// mount configures a handler of a port. All handlers are added with a mount, so that each handler has limits.
type mount struct {
	name string
	// requestBytes and responseBytes limit each message.
	requestBytes, responseBytes int
	// flushes is true for handlers of streams, because they must send each message immediately.
	flushes bool
	// idles is true for streams whose clients may be silent, so that their requests need not keep a pace. An
	// incomplete message of such a client uses at most requestBytes.
	idles bool
	// options are the handler's options, in addition to its limits.
	options []connect.HandlerOption
}

// addTo adds a handler with the options for its limits to mux.
func (m mount) addTo(mux *http.ServeMux, handler func(...connect.HandlerOption) (string, http.Handler)) error {
	if m.requestBytes <= 0 || m.responseBytes <= 0 {
		return fmt.Errorf("serve %s: its messages have no limit: set MaxRequestBytes and MaxResponseBytes", m.name)
	}
	path, h := handler(append([]connect.HandlerOption{
		connect.WithReadMaxBytes(m.requestBytes),
		connect.WithSendMaxBytes(m.responseBytes),
		// A compressed message may need a thousand times its size in memory. rejectCompressed rejects such messages,
		// and this option makes sure that Connect does not inflate them either. Responses are not compressed, because
		// callers are near, and compressing megabytes takes longer than sending them.
		connect.WithCompression("gzip", nil, nil),
		connect.WithCompressMinBytes(math.MaxInt),
	}, m.options...)...)
	h = rejectCompressed(h)
	if !m.idles {
		h = requirePace(m.requestBytes, h)
	}
	if !m.flushes {
		h = sendAtOnce(h)
	}
	mux.Handle(path, h)
	return nil
}

// sendAtOnce sends a response only when it is complete. Otherwise Connect would flush the response after its message
// and again after its trailers, which would wake the client twice.
func sendAtOnce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(unflushedWriter{w}, r)
	})
}

// unflushedWriter is a ResponseWriter that does not implement http.Flusher, so that Connect cannot flush it.
type unflushedWriter struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w unflushedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
