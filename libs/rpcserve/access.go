// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Access decides by a request's headers whether the request is answered. It returns the context for the request, or
// the error for the caller.
type Access func(r *http.Request) (context.Context, error)

// Callers returns an Access that admits clients whose certificate's ID matches one of the patterns. If identity is
// nil, it returns nil, which admits all clients, because without TLS clients cannot present a certificate.
func Callers(identity *mtls.Identity, patterns []string) (Access, error) {
	callers, err := mtls.ParsePatterns(patterns)
	if err != nil || identity == nil {
		return nil, err
	}
	return func(r *http.Request) (context.Context, error) {
		id := mtls.Peer(r.TLS)
		switch {
		case id == mtls.ID{}:
			return nil, Unauthenticated("this port requires a valid client certificate of the function runner")
		case !callers.Match(id):
			return nil, fault.New(fault.Denied, "%s may not call this port: it is for %s", id, callers)
		}
		return r.Context(), nil
	}, nil
}

// Unauthenticated returns the error of a request without a valid identity. It has an RPC code but no fault class,
// because no package has to react to it.
func Unauthenticated(text string) error {
	return connect.NewError(connect.CodeUnauthenticated, errors.New(text))
}

// Restricted returns a handler that passes to next the requests that access admits. It also passes all health checks,
// because Kubernetes' probes have no identity. A nil access admits all requests. Port is the name of the port in
// metrics and logs.
func Restricted(port string, access Access, t *telemetry.Telemetry, next http.Handler) (http.Handler, error) {
	if access == nil {
		access = func(r *http.Request) (context.Context, error) { return r.Context(), nil }
	}
	rejected, err := newRejections(port, t)
	return restrictedHandler{access: access, rejected: rejected, writer: connect.NewErrorWriter(), next: next}, err
}

// restrictedHandler is a handler that rejects requests which access does not admit.
type restrictedHandler struct {
	access   Access
	rejected *rejections
	writer   *connect.ErrorWriter
	next     http.Handler
}

// ServeHTTP implements http.Handler.
func (h restrictedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/"+grpchealth.HealthV1ServiceName+"/") {
		h.next.ServeHTTP(w, r)
		return
	}
	ctx, err := h.access(r)
	if err != nil {
		h.rejectRequest(w, r, err)
		return
	}
	h.next.ServeHTTP(w, r.WithContext(ctx)) //nolint:contextcheck // access returns the request's context with an identity
}

// rejectRequest answers a request with an error.
func (h restrictedHandler) rejectRequest(w http.ResponseWriter, r *http.Request, err error) {
	answer := rpcfault.ToConnect(err)
	h.rejected.recordRejection(r, answer)
	if h.writer.IsSupported(r) {
		_ = h.writer.Write(w, r, answer) // an error means that the client left
		return
	}
	http.Error(w, err.Error(), http.StatusForbidden)
}
