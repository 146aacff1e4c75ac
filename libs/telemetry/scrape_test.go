// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// openMetrics is the format that Prometheus asks for.
const openMetrics = "application/openmetrics-text;version=1.0.0"

// scrape returns what a scraper gets that accepts a format.
func scrape(t *testing.T, tel *telemetry.Telemetry, format string) *httptest.ResponseRecorder {
	t.Helper()
	rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Accept", format)
	tel.Component(cfg).Endpoints[0].Handler.ServeHTTP(rec, req)
	return rec
}

// record measures 0.3 seconds in a span that is sampled, and returns the trace's id.
func record(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	seconds, err := tel.Meters.Meter("test").Float64Histogram("test.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(.1, 1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(context.Background(), "test")
	defer span.End()
	seconds.Record(ctx, .3)
	return span.SpanContext().TraceID().String()
}

func TestExemplarsNameTheTrace(t *testing.T) {
	tel := newTelemetry(t, io.Discard)
	id := record(t, tel)
	body := scrape(t, tel, openMetrics).Body.String()
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, `test_duration_seconds_bucket{le="1.0"}`) && strings.Contains(line, id) {
			return
		}
	}
	t.Errorf("no bucket with an exemplar of trace %s in:\n%s", id, body)
}

// TestBucketsOfRPCsResolveWhatRPCsTake checks the two ways in which the instrumentation of RPCs measures.
func TestBucketsOfRPCsResolveWhatRPCsTake(t *testing.T) {
	tel := newTelemetry(t, io.Discard)
	call(t, tel)
	seconds, err := tel.Meters.Meter("grpc").Float64Histogram("rpc.client.call.duration", metric.WithUnit("s"))
	if err != nil {
		t.Fatal(err)
	}
	seconds.Record(t.Context(), 1)
	body := scrape(t, tel, "text/plain").Body.String()
	for _, want := range []string{
		`rpc_client_call_duration_seconds_bucket{le="0.0025"}`, `rpc_client_call_duration_seconds_bucket{le="300"}`,
		`rpc_server_call_duration_seconds_bucket{`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in:\n%s", want, body)
		}
	}
}

func TestVersionIsAMetric(t *testing.T) {
	tel := newTelemetry(t, io.Discard)
	if body := scrape(t, tel, openMetrics).Body.String(); !strings.Contains(body, `fn_build_info{goversion="go1`) {
		t.Errorf("no fn_build_info in:\n%s", body)
	}
}
