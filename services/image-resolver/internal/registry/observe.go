// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Operations of requests, for limits, error messages and metrics.
const (
	opPing     = "ping"
	opToken    = "token"
	opManifest = "manifest"
	opBlob     = "blob"
	opTags     = "tags"
	opRedirect = "redirect"
)

// purpose is the operation of a request. It determines limits, error messages and metrics.
type purpose struct {
	op    string
	layer bool // true for a layer, whose size the guard does not limit
	// tentative is true if the client will try plain HTTP after a failure of this request with TLS.
	tentative bool
}

// purposeKey is the context key of a request's [purpose].
type purposeKey struct{}

func purposeOf(req *http.Request) purpose {
	p, _ := req.Context().Value(purposeKey{}).(purpose)
	return p
}

// describe returns the name of a request's operation for error messages, such as "get manifest".
func (p purpose) describe(method string) string {
	if p.op == opPing || p.op == opToken {
		return "log in"
	}
	return strings.ToLower(method) + " " + p.op
}

// maxRegistries limits the values of the metric label "registry", because callers choose the registries. All
// further registries share the value otherRegistries.
const (
	maxRegistries   = 100
	otherRegistries = "other"
)

// metrics counts and traces the requests to registries.
type metrics struct {
	tracer   trace.Tracer
	requests metric.Int64Counter

	mu         sync.Mutex
	registries map[string]bool // registries that are values of the metric label
}

func newMetrics(tel *telemetry.Telemetry) *metrics {
	const scope = "image-resolver"
	requests := telemetry.Must(tel.Meters.Meter(scope).Int64Counter("fn.registry.requests",
		metric.WithDescription(
			"Requests sent to registries; code is the HTTP status, or error. The first 100 registries that answer "+
				"get a label of their own, the rest are other. Labels: registry, op, code.")))
	return &metrics{tracer: tel.Tracers.Tracer(scope), requests: requests, registries: make(map[string]bool)}
}

// sendObserved sends a request within a trace span and counts it in a metric. The span and the metric omit the URL,
// which may contain a secret. If TLS fails and the client then tries plain HTTP, only the second request is counted.
func (m *metrics) sendObserved(
	registry string, req *http.Request, send func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	p := purposeOf(req)
	if req.Response != nil { // the request follows a redirect
		p.op = opRedirect
	}
	ctx, span := m.tracer.Start(req.Context(), "fn.registry."+p.op, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("fn.registry", registry), attribute.String("http.request.method", req.Method),
			attribute.String("server.address", req.URL.Host)))
	defer span.End()
	resp, err := send(req)
	code := "error"
	switch {
	case err == nil:
		code = strconv.Itoa(resp.StatusCode)
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	case p.tentative && !isDistrust(err): // the client tries plain HTTP next, except after an untrusted certificate
		span.SetAttributes(attribute.String("fn.registry.fallback", "http"))
		return resp, err
	default:
		span.SetStatus(codes.Error, "no answer") // without the text of err, which may contain secrets
	}
	m.requests.Add(ctx, 1, metric.WithAttributes(attribute.String("registry", m.registryLabel(registry, err == nil)),
		attribute.String("op", p.op), attribute.String("code", code)))
	return resp, err
}

// registryLabel returns the value of the metric label registry. Only the first maxRegistries registries that answer are
// named. All other registries share the value otherRegistries.
func (m *metrics) registryLabel(registry string, answered bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answered && len(m.registries) < maxRegistries {
		m.registries[registry] = true
	}
	if m.registries[registry] {
		return registry
	}
	return otherRegistries
}
