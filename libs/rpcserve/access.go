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
)

// Access decides whether a request is answered, before anything of it is read but its headers. It
// returns the context that the request is answered in.
type Access func(r *http.Request) (context.Context, error)

// Callers returns the access of clients that prove with a certificate that they match one of the
// patterns. It is nil, for all, if this program has no identity that they could trust. A permissive program
// answers clients that prove nothing too.
func Callers(identity *mtls.Identity, patterns []string) (Access, error) {
	callers, err := mtls.ParsePatterns(patterns)
	if err != nil || identity == nil {
		return nil, err
	}
	return callersOf(callers, identity), nil
}

func callersOf(callers mtls.Patterns, identity *mtls.Identity) Access {
	return func(r *http.Request) (context.Context, error) {
		id := mtls.Peer(r.TLS)
		switch {
		case id == mtls.ID{} && identity.Permit(r.Context()):
		case id == mtls.ID{}:
			return nil, Unauthenticated("this port requires a valid client certificate of the function runner")
		case !callers.Match(id):
			return nil, fault.New(fault.Denied, "%s may not call this port: it is for %s", id, callers)
		}
		return r.Context(), nil
	}
}

// Unauthenticated returns the error of a request without a valid identity. It has no fault class: what
// a program says of a request's identity does not concern that program's own callers.
func Unauthenticated(text string) error {
	return connect.NewError(connect.CodeUnauthenticated, errors.New(text))
}

// Restricted has next answer the requests that access admits, and health checks: probes of Kubernetes
// have no identity. A nil access admits all.
func Restricted(access Access, next http.Handler) http.Handler {
	if access == nil {
		return next
	}
	rejections := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/"+grpchealth.HealthV1ServiceName+"/") {
			next.ServeHTTP(w, r)
			return
		}
		ctx, err := access(r)
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(ctx)) //nolint:contextcheck // access returns the request's context with an identity
		case rejections.IsSupported(r):
			_ = rejections.Write(w, r, rpcfault.ToConnect(err)) // otherwise the client has left
		default:
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	})
}
