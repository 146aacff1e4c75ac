// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

func TestEachCallOfARegistryHasASpan(t *testing.T) {
	tests := map[string]struct {
		reason     string
		image      string
		constraint string
		want       []string // operation and status
	}{
		"image": {"a cold start can be taken apart", "fn:v1", "", []string{"ping 401", "manifest 200", "blob 200"}},
		"constraint": {
			"with the list of tags", "fn", ">=1.0.0", []string{"ping 401", "tags 200", "ping 401", "manifest 200", "blob 200"},
		},
		"unknown":   {"also what fails", "fn:v2", "", []string{"ping 401", "manifest 404"}},
		"no answer": {"also requests without an answer", "gone", "", []string{"ping error"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := private("right")(t)
			s.registry.Push(t, "fn:v1", function)
			s.registry.Push(t, "fn:v1.0.0", function)
			image := s.registry.Host + "/" + tc.image
			if tc.image == "gone" {
				image = "127.0.0.1:1/fn"
				s.config.InsecureRegistries = []string{"127.0.0.1:1"}
			}
			r, said := start(t, s.config)
			_, _ = r.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: image, TagConstraint: tc.constraint})
			host, _, _ := strings.Cut(image, "/")
			calls := callsOf(t, said.spans.GetSpans(), host)
			if tc.image == "gone" {
				calls = slices.Compact(calls) // tried by HTTPS and HTTP, several times
			}
			if !slices.Equal(calls, tc.want) {
				t.Errorf("calls %q, want %q: %s", calls, tc.want, tc.reason)
			}
		})
	}
}

// callsOf returns the calls of a registry that its spans tell of, and checks that these
// are in the trace of the request and say which registry it was.
func callsOf(t *testing.T, spans tracetest.SpanStubs, host string) []string {
	t.Helper()
	var calls []string
	request := spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "fn.resolve" })]
	for _, s := range spans {
		op, ok := strings.CutPrefix(s.Name, "fn.registry.")
		if !ok {
			continue
		}
		said := attribute.NewSet(s.Attributes...)
		registry, _ := said.Value("fn.registry")
		if s.SpanContext.TraceID() != request.SpanContext.TraceID() || s.SpanKind != trace.SpanKindClient ||
			registry.AsString() != host {
			t.Errorf("span %s is a %s's, of %s, and in another trace: %t", s.Name, s.SpanKind, registry.AsString(),
				s.SpanContext.TraceID() != request.SpanContext.TraceID())
		}
		status := "error"
		if code, ok := said.Value("http.response.status_code"); ok {
			status = code.String()
		}
		if scheme, _ := said.Value("server.address"); status == "error" && op == "ping" && scheme.AsString() == host &&
			host != "127.0.0.1:1" {
			continue // that the registry has no TLS was found out first
		}
		calls = append(calls, op+" "+status)
	}
	return calls
}
