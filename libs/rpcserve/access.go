// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// Access decides from a request's headers whether a server answers the request. It returns the context for the
// handler, or the error for the caller.
type Access func(r *http.Request) (context.Context, error)

// Callers returns an Access for mutual TLS: it admits a client if the SPIFFE ID in the client's certificate matches
// a pattern. If identity is nil, the server does not use TLS and clients cannot present a certificate. Then Callers
// returns nil, and a nil Access admits all clients.
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

// Unauthenticated returns the error for a request without a valid identity. It has an RPC code instead of a class
// of package fault, because only the client handles this error.
func Unauthenticated(text string) error {
	return connect.NewError(connect.CodeUnauthenticated, errors.New(text))
}
