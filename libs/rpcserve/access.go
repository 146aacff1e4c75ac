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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Access admits or rejects a request before the server reads its body. It returns the context for the handler, or the
// error for the caller.
type Access func(r *http.Request) (context.Context, error)

// Callers returns an Access that checks the SPIFFE ID in the client's certificate. This Access admits the client if the
// ID matches a pattern. If the server does not use TLS, identity is nil. Callers then returns a nil Access, which
// admits all clients.
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

// Unauthenticated returns the error for a request without a valid identity. It is a Connect error, and not an error of
// package fault. Package fault needs no class for this error, because only the client handles it.
func Unauthenticated(text string) error {
	return connect.NewError(connect.CodeUnauthenticated, errors.New(text))
}

// Caller returns the IP address of the client of the RPC in ctx. It omits the port, so that all connections of a
// pod count as the same caller. The address is empty if ctx contains no RPC.
func Caller(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	return serve.Peer(call.Peer().Addr)
}

// Hosts contains host names with which browsers may call a port. IP addresses and localhost are always permitted.
type Hosts []string

// Permit reports whether a browser may call the port with this Host header. The check prevents DNS rebinding: in this
// attack, a malicious web site makes its own host name resolve to our address, so that its scripts can read our
// answers. The Host header then contains the web site's name.
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

// isWebSite reports whether a request comes from a web site that may not call this port. This is the case if a script
// of another web site sent the request, or if the request's host name is not permitted. isWebSite returns false for
// requests without the headers Origin and Sec-Fetch-Site, because only browsers send these headers.
func (h Hosts) isWebSite(r *http.Request) bool {
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	return browser && (http.NewCrossOriginProtection().Check(r) != nil || !h.Permit(r.Host))
}

// maxPathBytes is the maximum length of a request's path in a log line.
const maxPathBytes = 200

// rejections counts and logs requests from callers that may not use a port.
type rejections struct {
	port      string
	telemetry *telemetry.Telemetry
	total     metric.Int64Counter
	// lines limits log lines separately for each of the few RPC error codes. With a common limit, many rejections with
	// the same code would hide a rejection with another code.
	lines serve.LogLimiter
}

func newRejections(port string, t *telemetry.Telemetry) *rejections {
	total := telemetry.Must(t.Meters.Meter("rpcserve").Int64Counter("fn.callers.rejected",
		metric.WithDescription(
			"Requests that a port with TLS rejected because of their sender: unauthenticated without a valid "+
				"identity, permission_denied with an identity that may not call. Labels: port, reason.")))
	return &rejections{port: port, telemetry: t, total: total}
}

// recordRejection counts a rejected request. It logs at most one rejected request per minute and RPC error code.
func (r *rejections) recordRejection(req *http.Request, err error) {
	reason := connect.CodeOf(err).String()
	r.total.Add(req.Context(), 1, metric.WithAttributes(
		attribute.String("port", r.port), attribute.String("reason", reason)))
	r.lines.Limit(reason, func(count int) {
		path, _ := excerpt.Start(req.URL.Path, maxPathBytes)
		r.telemetry.Log.Warn("caller rejected", "endpoint", r.port,
			"peer", serve.Peer(req.RemoteAddr), "id", mtls.Peer(req.TLS).String(), "path", path, "count", count, "error", err)
	})
}
