// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/otelcol"
)

// configuration is that of the component "tracing".
const configuration = "../../deploy/observability/collector/config.yaml"

// TestConfigurationIsValid loads the configuration as it is.
func TestConfigurationIsValid(t *testing.T) {
	collector := newCollector(t)
	if err := collector.DryRun(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCommandReadsTheConfiguration runs the command, which has requirements of its own.
func TestCommandReadsTheConfiguration(t *testing.T) {
	command := otelcol.NewCommand(collectorSettings())
	command.SetArgs([]string{"validate", "--config=file:" + configuration})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestASpanPasses sends a span to the collector, and finds it at the collector's backend.
func TestASpanPasses(t *testing.T) {
	received := make(chan []byte, 10)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("the backend was sent %s: %v", r.URL.Path, err)
		}
		received <- body
	}))
	t.Cleanup(backend.Close)
	address := freeAddress(t)
	run(t, newCollector(t,
		"exporters::otlphttp::endpoint: "+backend.URL, "exporters::otlphttp::compression: none",
		"receivers::otlp::protocols::http::endpoint: "+address,
		"receivers::otlp::protocols::grpc::endpoint: "+freeAddress(t),
		"service::telemetry::metrics::level: none", "processors::batch::timeout: 10ms"))
	send(t, "http://"+address+"/v1/traces")
	select {
	case body := <-received:
		if !bytes.Contains(body, []byte("fn.evaluate")) {
			t.Errorf("the backend was sent %q, without the span", body)
		}
	case <-time.After(time.Minute):
		t.Fatal("the span did not arrive")
	}
}

// TestMetricsAreNotTaken checks that the collector's backends, which are for traces, are sent no metrics: the programs
// offer theirs to Prometheus.
func TestMetricsAreNotTaken(t *testing.T) {
	address := freeAddress(t)
	run(t, newCollector(t,
		"exporters::otlphttp::endpoint: http://"+freeAddress(t), "receivers::otlp::protocols::http::endpoint: "+address,
		"receivers::otlp::protocols::grpc::endpoint: "+freeAddress(t), "service::telemetry::metrics::level: none"))
	send(t, "http://"+address+"/v1/traces")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/metrics",
		strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("the collector answers %s to metrics, want not found", resp.Status)
	}
}

// newCollector returns a collector with the configuration, and changes to it.
func newCollector(t *testing.T, changes ...string) *otelcol.Collector {
	t.Helper()
	s := collectorSettings()
	s.ConfigProviderSettings.ResolverSettings.URIs = []string{"file:" + configuration}
	for _, change := range changes {
		resolver := &s.ConfigProviderSettings.ResolverSettings
		resolver.URIs = append(resolver.URIs, "yaml:"+change)
	}
	s.DisableGracefulShutdown = true // no signals
	collector, err := otelcol.NewCollector(s)
	if err != nil {
		t.Fatal(err)
	}
	return collector
}

// run runs a collector until the test ends.
func run(t *testing.T, collector *otelcol.Collector) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- collector.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the collector ended: %v", err)
		}
	})
}

// send posts a span in OTLP's JSON form, and repeats it until the collector has started.
func send(t *testing.T, url string) {
	t.Helper()
	now := time.Now().UnixNano()
	span := fmt.Sprintf(`{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "fn.evaluate", "kind": 2,
		"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708",
		"startTimeUnixNano": "%d", "endTimeUnixNano": "%d"}]}]}]}`, now, now+1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(span)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("the collector answers %s", resp.Status)
			}
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("the collector does not answer: %v", err)
		}
	}
}

// freeAddress returns an address of this machine that is currently free.
func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
