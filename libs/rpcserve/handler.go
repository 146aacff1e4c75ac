// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/slowclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Handler is the HTTP handler for the RPC services of a port.
type Handler struct {
	telemetry *telemetry.Telemetry
	access    Access // nil admits all requests
	rejected  *rejections
	hosts     Hosts
	errors    *connect.ErrorWriter
	services  map[string]mount // key: path prefix of the service's methods, such as "/grpc.health.v1.Health/"
}

// mount is an RPC service of a port, with its HTTP handler and its size limits.
type mount struct {
	name string
	// requestBytes and responseBytes are the maximum sizes of a request message and of a response message.
	requestBytes, responseBytes int
	// idles is true if clients may pause for a long time, for example on a stream. The server then does not require that
	// clients send at a minimum rate. This is safe, because an incomplete message occupies at most requestBytes of memory.
	idles bool
	// options contains the Connect options of the service, except the options for its limits.
	options []connect.HandlerOption
	handler http.Handler
}

// add adds an RPC service to the port. It panics if m does not limit the sizes of messages.
func (h *Handler) add(m mount, handler func(...connect.HandlerOption) (string, http.Handler)) {
	if m.requestBytes <= 0 || m.responseBytes <= 0 {
		panic("rpcserve: messages of " + m.name + " have no limit: set MaxRequestBytes and MaxResponseBytes")
	}
	path, next := handler(append([]connect.HandlerOption{
		connect.WithReadMaxBytes(m.requestBytes),
		connect.WithSendMaxBytes(m.responseBytes),
		// We remove Connect's support for compression. A compressed request may grow to a thousand times its size in memory.
		// Compressed responses would not save time: callers are in the same cluster, where compressing megabytes takes longer
		// than sending them.
		connect.WithCompression("gzip", nil, nil),
		connect.WithCompressMinBytes(math.MaxInt),
	}, m.options...)...)
	m.handler = next
	h.services[path] = m
}

// Restrict returns a handler with the same services for another port, with its own access check. If access is nil, the
// handler admits all requests. The argument port is the port's name in metrics and logs.
func (h *Handler) Restrict(port string, access Access) *Handler {
	restricted := *h
	restricted.access = access
	restricted.rejected = newRejections(port, h.telemetry)
	return &restricted
}

// ServeHTTP implements http.Handler. It rejects unauthorized and compressed requests, and passes all other requests
// to their service.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context() //nolint:contextcheck // access returns the request's context with an identity
	// Health checks need no permission, because the probes of Kubernetes cannot authenticate.
	if h.access != nil && !strings.HasPrefix(r.URL.Path, "/"+grpchealth.HealthV1ServiceName+"/") {
		var err error
		if ctx, err = h.access(r); err != nil {
			h.rejected.recordRejection(r, rpcfault.ToConnect(err))
			h.writeError(w, r, err)
			return
		}
	}
	if h.hosts.isWebSite(r) {
		http.Error(w, "web sites may not call this port", http.StatusForbidden)
		return
	}
	service, ok := h.services[r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')+1]]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if name := compressionOf(r); name != "" {
		h.writeError(w, r, fault.New(fault.Unimplemented,
			"the request is compressed with %q, which this server does not take: send it without compression", name))
		return
	}
	r = r.WithContext(ctx)
	if !service.idles {
		r.Body = newPacedBody(r.Body, http.NewResponseController(w), service.requestBytes)
	}
	service.handler.ServeHTTP(w, r)
}

// writeError answers a request with an RPC error.
func (h *Handler) writeError(w http.ResponseWriter, r *http.Request, err error) {
	_ = h.errors.Write(w, r, rpcfault.ToConnect(err)) // fails only if the client has disconnected
}

// compressionHeaders lists the request headers for compression in gRPC, Connect and Connect streams.
var compressionHeaders = []string{"Grpc-Encoding", "Content-Encoding", "Connect-Content-Encoding"}

// compressionOf returns the name of a request's compression, or an empty string if the request is not compressed.
// ServeHTTP rejects compressed requests itself, because Connect's own error would not explain the remedy.
func compressionOf(r *http.Request) string {
	for _, header := range compressionHeaders {
		if name := r.Header.Get(header); name != "" && name != "identity" {
			return name
		}
	}
	return ""
}

// passed is a deadline in the past. We set it as the read deadline to interrupt a pending Read.
var passed = time.Unix(1, 0)

// pacedBody is a request body that returns an error if the client sends it too slowly. Without this check, a slow
// client could occupy the request's memory for an unlimited time. A single goroutine must read the body. It must not
// pause between two reads, because each pause gives the client more time.
type pacedBody struct {
	io.ReadCloser
	meter  *slowclient.Meter
	credit int // maximum number of further bytes that extend the client's time
}

func newPacedBody(body io.ReadCloser, conn *http.ResponseController, maxBytes int) *pacedBody {
	return &pacedBody{
		ReadCloser: body, credit: maxBytes,
		meter: slowclient.New(func() { _ = conn.SetReadDeadline(passed) }),
	}
}

// Read implements io.Reader. Only the time inside Read counts as the client's time, because the server does not wait
// for the client at other times. If the client is too slow, Read returns a *connect.Error, which Connect passes on
// unchanged.
func (b *pacedBody) Read(p []byte) (n int, err error) {
	inTime := b.meter.Do(func() int {
		n, err = b.ReadCloser.Read(p)
		earned := min(n, b.credit)
		b.credit -= earned
		return earned
	})
	if !inTime {
		return n, rpcfault.ToConnect(fault.New(fault.DeadlineExceeded,
			"the request was given up: it comes with less than %d bytes per second and pauses of more than %v: "+
				"check its client, and the network between", slowclient.BytesPerSecond, slowclient.Grace))
	}
	return n, err
}
