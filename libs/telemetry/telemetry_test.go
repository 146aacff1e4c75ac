// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/rerun"
)

var cfg = telemetry.Config{MetricsAddress: "127.0.0.1:0", LogVerbosity: 2, LogFormat: "json"}

func newTelemetry(t *testing.T, logs io.Writer) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), "test", cfg, logs)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// echo is a service to trace and measure.
type echo struct{ tel *telemetry.Telemetry }

func (e echo) EvaluateFunction(ctx context.Context,
	req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	e.tel.Log.InfoContext(ctx, "evaluating")
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

// call makes one RPC to a traced server, from a caller with its own trace.
func call(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	interceptor := tel.Interceptor()
	mux := http.NewServeMux()
	mux.Handle(evaluatorconnect.NewFunctionEvaluatorHandler(echo{tel}, connect.WithInterceptors(interceptor)))
	server := httptest.NewServer(mux)
	defer server.Close()
	client := evaluatorconnect.NewFunctionEvaluatorClient(server.Client(), server.URL)
	ctx, info := connect.NewClientContext(t.Context())
	info.RequestHeader().Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if _, err := client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{}); err != nil {
		t.Fatal(err)
	}
}

func TestLogLinesCarryTheCallersTrace(t *testing.T) {
	var logs bytes.Buffer
	tel := newTelemetry(t, &logs)
	call(t, tel)
	var line map[string]any
	if err := json.Unmarshal(logs.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, logs.String())
	}
	if line["trace_id"] != "0af7651916cd43dd8448eb211c80319c" || line["service"] != "test" {
		t.Errorf("log line is %v, want the caller's trace id and the service's name", line)
	}
}

// TestLogLinesAreBounded logs values of megabytes, as callers and functions write them.
func TestLogLinesAreBounded(t *testing.T) {
	long := "begins" + strings.Repeat("x", 5<<20) + "ends"
	var logs bytes.Buffer
	newTelemetry(t, &logs).Log.With("image", long).Info("evaluated", "error", errors.New(long), "group",
		slog.GroupValue(slog.String("log", long)), "count", 7)
	if n := logs.Len(); n > 30<<10 || strings.Count(logs.String(), "begins") != 3 ||
		strings.Count(logs.String(), "ends") != 3 || !strings.Contains(logs.String(), `"count":7`) {
		t.Errorf("the line has %d bytes: %.300s", n, logs.String())
	}
}

// TestLogLinesHideNothing has a caller write a name that reads as another one.
func TestLogLinesHideNothing(t *testing.T) {
	const hidden = "fn\u202egnp.exe\u200b"
	var logs bytes.Buffer
	newTelemetry(t, &logs).Log.Info("evaluated", "image", hidden, "error", errors.New(hidden))
	if strings.ContainsAny(logs.String(), "\u202e\u200b") || strings.Count(logs.String(), `u202egnp.exe`) != 2 {
		t.Errorf("the line is %s, want the hidden characters escaped", logs.String())
	}
}

func TestLogLinesHaveSecondsAndNoEmptyFields(t *testing.T) {
	var logs bytes.Buffer
	newTelemetry(t, &logs).Log.Info("drained", "seconds", 1500*time.Millisecond, "pod", "", "unlogged", 0, "attempts", 0)
	var line map[string]any
	if err := json.Unmarshal(logs.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, logs.String())
	}
	delete(line, "time")
	want := map[string]any{"level": "INFO", "msg": "drained", "service": "test", "seconds": 1.5, "attempts": 0.0}
	if !maps.Equal(line, want) {
		t.Errorf("the line is %v, want %v", line, want)
	}
}

func TestMetricsCanBeScraped(t *testing.T) {
	tel := newTelemetry(t, io.Discard)
	call(t, tel)
	component := tel.Component(cfg)
	if len(component.Endpoints) != 1 {
		t.Fatalf("%d endpoints, want one", len(component.Endpoints))
	}
	rec := httptest.NewRecorder()
	component.Endpoints[0].Handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{"\ngo_goroutines ", "\nrpc_server_call_duration_", "\nprocess_open_fds "} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %q among the metrics", strings.TrimSpace(want))
		}
	}
	off := cfg
	off.MetricsAddress = "off"
	if n := len(tel.Component(off).Endpoints); n != 0 {
		t.Errorf("%d endpoints when off", n)
	}
}

// TestNothingIsMeasuredWithoutAReader turns the endpoint off: measuring costs nothing then.
func TestNothingIsMeasuredWithoutAReader(t *testing.T) {
	for address, want := range map[string]bool{"off": false, "127.0.0.1:0": true} {
		config := cfg
		config.MetricsAddress = address
		tel, err := telemetry.New(t.Context(), "test", config, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
		counter, err := tel.Meters.Meter("test").Int64Counter("some")
		if err != nil {
			t.Fatal(err)
		}
		if got := counter.Enabled(t.Context()); got != want {
			t.Errorf("metrics at %q are measured: %v, want %v", address, got, want)
		}
	}
}

// TestGoroutinesAreThoseOfTheProgram checks that the number of goroutines does not depend on the
// number of other metrics. (The reader has one, and waits for it in another.) It runs in a separate process, because
// exporters of other tests may still start and end goroutines.
func TestGoroutinesAreThoseOfTheProgram(t *testing.T) {
	if _, there := rerun.Test(t, ""); !there {
		return
	}
	tel := newTelemetry(t, io.Discard)
	counter, err := tel.Meters.Meter("test").Int64Counter("many")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 500 {
		counter.Add(t.Context(), 1, metric.WithAttributes(attribute.Int("n", n)))
	}
	handler := tel.Component(cfg).Endpoints[0].Handler
	for range 10 {
		before := runtime.NumGoroutine()
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		_, value, _ := strings.Cut(rec.Body.String(), "\ngo_goroutines ")
		value, _, _ = strings.Cut(value, "\n")
		if n, err := strconv.Atoi(value); err != nil || n > before+2 {
			t.Fatalf("%q goroutines are counted where there are %d", value, before)
		}
	}
}

func TestExportFollowsTheStandardVariables(t *testing.T) {
	tests := map[string]struct {
		reason string
		env    map[string]string
		want   bool
	}{
		"unset":    {"nothing set means nothing sent", nil, false},
		"endpoint": {"an endpoint alone turns export on", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "here"}, true},
		"exporter": {
			"so does an exporter by name",
			map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "here"},
			true,
		},
		"none": {
			"none means none, endpoint or not",
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "here", "OTEL_TRACES_EXPORTER": "none"},
			false,
		},
		"disabled": {
			"and there is a switch for everything",
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "here", "OTEL_SDK_DISABLED": "true"},
			false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var received atomic.Int32
			collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/traces") || r.URL.Path == "/" {
					received.Add(1)
				}
			}))
			defer collector.Close()
			t.Setenv("OTEL_METRICS_EXPORTER", "none")
			for k, v := range tc.env {
				t.Setenv(k, strings.ReplaceAll(v, "here", collector.URL))
			}
			tel := newTelemetry(t, io.Discard)
			call(t, tel)
			if err := tel.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := received.Load() > 0; got != tc.want {
				t.Errorf("traces sent: %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestWrongExporterIsNamed(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
	if _, err := telemetry.New(t.Context(), "test", cfg, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "carrier-pigeon") {
		t.Errorf("New = %v, want an error that names the exporter", err)
	}
}
