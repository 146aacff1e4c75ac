// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// A behavior is what a collector does with what it is sent: it answers with an error, or with success if it is nil.
type behavior func(ctx context.Context, hanging <-chan struct{}) error

// behaviors are those of collectors that do not do their work. One that is down is not among them: see below.
var behaviors = map[string]behavior{
	"refuses": func(context.Context, <-chan struct{}) error { return status.Error(codes.Unavailable, "no") },
	"is full": func(context.Context, <-chan struct{}) error { return status.Error(codes.ResourceExhausted, "full") },
	"is slow": func(ctx context.Context, _ <-chan struct{}) error {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	},
	"hangs": func(_ context.Context, hanging <-chan struct{}) error { <-hanging; return nil },
	"down":  nil,
}

// collector starts one, and returns its address, and what has one end that hangs.
func collector(t *testing.T, protocol string, does behavior) (address string, release func()) {
	t.Helper()
	hanging := make(chan struct{})
	release = sync.OnceFunc(func() { close(hanging) })
	if protocol == "grpc" {
		listener := servetest.Listen(t)
		server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			return does(stream.Context(), hanging)
		}))
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) })
		t.Cleanup(func() { release(); server.Stop(); serving.Wait() })
		return listener.Addr().String(), release
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status.Code(does(r.Context(), hanging)) {
		case codes.Unavailable:
			w.WriteHeader(http.StatusServiceUnavailable)
		case codes.ResourceExhausted:
			w.WriteHeader(http.StatusTooManyRequests)
		default:
		}
	}))
	t.Cleanup(func() { release(); server.Close() })
	return server.Listener.Addr().String(), release
}

// TestNothingWaitsForACollector has a program do far more than it can send or keep, while its collector does not do
// its work: the program ends its spans meanwhile, and writes one line.
func TestNothingWaitsForACollector(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		for name, does := range behaviors {
			t.Run(protocol+" "+name, func(t *testing.T) {
				address, release := "127.0.0.1:1", func() {} // nothing listens there
				if does != nil {
					address, release = collector(t, protocol, does)
				}
				setCollector(t, protocol, address)
				var lines logtest.Log
				begin := time.Now()
				tel, err := telemetry.New(t.Context(), "test", cfg, &lines)
				if err != nil {
					t.Fatal(err)
				}
				tel.LogErrors()
				evaluations(t, tel) // one that hangs does so until they have ended
				lastly, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_ = tel.Shutdown(lastly) // the error is the collector's
				release()
				if n := lines.Count("\n"); n > 1+int(time.Since(begin)/time.Minute) {
					t.Errorf("%d lines in %v, want one a minute at most:\n%.2000s", n, time.Since(begin), lines.String())
				}
			})
		}
	}
}

// setCollector has telemetry sent to a collector, in small batches with short timeouts.
func setCollector(t *testing.T, protocol, address string) {
	t.Helper()
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
		"OTEL_EXPORTER_OTLP_TIMEOUT": "20", "OTEL_BSP_EXPORT_TIMEOUT": "20", "OTEL_BSP_SCHEDULE_DELAY": "1",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "16", "OTEL_BSP_MAX_QUEUE_SIZE": "32", "OTEL_METRIC_EXPORT_INTERVAL": "10",
		"OTEL_METRIC_EXPORT_TIMEOUT": "20",
	} {
		t.Setenv(name, value)
	}
}

// evaluations makes spans and counts: more than the queue holds.
func evaluations(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	counter, err := tel.Meters.Meter("test").Int64Counter("test")
	if err != nil {
		t.Fatal(err)
	}
	tracer := tel.Tracers.Tracer("test")
	for range 20_000 {
		ctx, span := tracer.Start(t.Context(), "test")
		counter.Add(ctx, 1)
		span.End()
	}
}
