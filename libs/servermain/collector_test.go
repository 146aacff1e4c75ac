// SPDX-License-Identifier: Apache-2.0

package servermain_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// exportTimeout is the time in milliseconds after which OpenTelemetry gives up an export, and longestFlush less than
// that, and more than the program waits for its collector at its end.
const (
	exportTimeout = "3600000"
	longestFlush  = 5 * time.Minute
)

// hang returns the address of a server that accepts connections and never answers.
func hang(t *testing.T) string {
	t.Helper()
	listener := servetest.Listen(t)
	var open sync.WaitGroup
	var conns []net.Conn
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	return listener.Addr().String()
}

// TestAHangingCollectorDoesNotDelayTheEnd stops a program that has traces and metrics to send.
func TestAHangingCollectorDoesNotDelayTheEnd(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+hang(t))
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", exportTimeout)
			ctx, stop := context.WithCancel(t.Context())
			var stopped time.Time
			build := func(_ context.Context, frame servermain.Frame) ([]serve.Component, error) {
				counter, err := frame.Telemetry.Meters.Meter("test").Int64Counter("test")
				return []serve.Component{{Tasks: []serve.Task{func(ctx context.Context) error {
					ctx, span := frame.Telemetry.Tracers.Tracer("test").Start(ctx, "test")
					counter.Add(ctx, 1)
					span.End()
					stopped = time.Now()
					stop()
					return nil
				}}}}, err
			}
			err := servermain.Run(ctx, "test", settings, build)
			if took := time.Since(stopped); err != nil || took > longestFlush {
				t.Errorf("Run = %v, %v after the signal, want at most %v", err, took, longestFlush)
			}
		})
	}
}
