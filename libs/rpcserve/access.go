// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
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

// Caller returns the IP address of the client that made the current call. It omits the port, so that all
// connections of a pod count as the same caller. Without a current call in ctx, it returns an empty string.
func Caller(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	return serve.Peer(call.Peer().Addr)
}

// Hosts contains the host names by which browsers may call a port. IP addresses and localhost are always permitted.
type Hosts []string

// Permit reports whether a browser may call the port by the host name in the request's Host header. It prevents DNS
// rebinding: a malicious web site can let its own host name resolve to our address, so that its scripts can read
// our answers. The Host header of such a request contains the site's name.
func (h Hosts) Permit(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(h, func(name string) bool { return strings.EqualFold(name, host) })
}

// isWebSite reports whether a request must be rejected because a script of another web site sent it, or because it
// has a host name that is not permitted. Only requests of browsers are rejected: they contain the header Origin or
// Sec-Fetch-Site.
func (h Hosts) isWebSite(r *http.Request) bool {
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	return browser && (http.NewCrossOriginProtection().Check(r) != nil || !h.Permit(r.Host))
}
