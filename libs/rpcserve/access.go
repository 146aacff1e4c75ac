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
