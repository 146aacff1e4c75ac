// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"net"
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

// The operations of requests.
const (
	opPing      = "ping"
	opToken     = "token"
	opManifest  = "manifest"
	opBlob      = "blob"
	opTags      = "tags"
	opReferrers = "referrers"
	opRedirect  = "redirect"
)

// operation returns what a request is for.
func operation(req *http.Request) string {
	path := req.URL.Path
	switch {
	case path == "/v2/":
		return opPing
	case strings.HasPrefix(path, "/v2/") && strings.Contains(path, "/manifests/"):
		return opManifest
	case strings.HasPrefix(path, "/v2/") && strings.Contains(path, "/blobs/"):
		return opBlob
	case strings.HasPrefix(path, "/v2/") && strings.HasSuffix(path, "/tags/list"):
		return opTags
	case strings.HasPrefix(path, "/v2/") && strings.Contains(path, "/referrers/"):
		return opReferrers
	case req.Response != nil: // what this request follows
		return opRedirect
	default:
		return opToken
	}
}

// maxRegistries bounds the label of that name: callers choose the registries. All others have otherRegistries.
const (
	maxRegistries   = 100
	otherRegistries = "other"
)

// metrics counts and traces requests.
type metrics struct {
	tracer   trace.Tracer
	requests metric.Int64Counter

	mu         sync.Mutex
	registries map[string]bool // those with a label
}

func newMetrics(tel *telemetry.Telemetry) (*metrics, error) {
	const scope = "image-resolver"
	requests, err := tel.Meters.Meter(scope).Int64Counter("fn.registry.requests",
		metric.WithDescription("Requests sent to registries, by HTTP status or \"error\"."))
	if err != nil {
		return nil, err
	}
	return &metrics{tracer: tel.Tracers.Tracer(scope), requests: requests, registries: make(map[string]bool)}, nil
}

// observe sends a request in a span of its own and counts it. Neither names the
// URL: its query may be a secret. The failure of a tentative request, which is followed by another one
// of the same purpose, is not counted.
func (m *metrics) observe(
	registry string,
	req *http.Request,
	tentative bool,
	send func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	op := operation(req)
	ctx, span := m.tracer.Start(
		req.Context(),
		"fn.registry."+op,
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("fn.registry", registry),
			attribute.String("http.request.method", req.Method),
			attribute.String("server.address", req.URL.Host),
		),
	)
	defer span.End()
	resp, err := send(req)
	code := "error"
	switch {
	case err == nil:
		code = strconv.Itoa(resp.StatusCode)
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	case tentative && !isDistrust(err): // nothing follows where a certificate is not trusted
		span.SetAttributes(attribute.String("fn.registry.fallback", "http"))
		return resp, err
	default:
		span.SetStatus(codes.Error, kind(err))
	}
	label := m.label(registry, err == nil)
	m.requests.Add(ctx, 1, metric.WithAttributes(
		attribute.String("registry", label), attribute.String("op", op), attribute.String("code", code)))
	return resp, err
}

// label returns the label of a registry: its name if it has answered, while there are few enough of them.
func (m *metrics) label(registry string, answered bool) string {
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

// kind returns what failed in a few words, without any text from outside.
func kind(err error) string {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case isDistrust(err):
		return "certificate is not trusted"
	case ok && timeout.Timeout():
		return "timeout"
	default:
		return "no answer"
	}
}
