// SPDX-License-Identifier: Apache-2.0

package evalhandler_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhandler"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
)

// BenchmarkTelemetry measures what traces, metrics, the log and the history cost for one evaluation, with and
// without a collector.
func BenchmarkTelemetry(b *testing.B) {
	for name, exporting := range map[string]bool{"off": false, "on": true} {
		b.Run(name, func(b *testing.B) {
			if exporting {
				collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
				}))
				b.Cleanup(collector.Close)
				b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
			}
			evaluate := telemetered(b)
			b.ReportAllocs()
			for b.Loop() {
				if err := evaluate(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// telemetered returns a function that sends an evaluation through the interceptor of RPCs and a handler.
func telemetered(b *testing.B) func(context.Context) error {
	b.Helper()
	cfg := telemetry.Config{MetricsAddress: "127.0.0.1:0", LogFormat: "json", LogVerbosity: 2}
	tel, err := telemetry.New(b.Context(), "test", cfg, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	door := evalhandler.New(evalhandler.Config{
		Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{catalog{}},
		History:         evalhistory.New(),
		MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20, MaxLogRate: 10, Telemetry: tel,
	})
	interceptor := tel.Interceptor()
	evaluate := interceptor.WrapUnary(func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		resp, err := door.EvaluateFunction(ctx, r.Any().(*evaluator.EvaluateFunctionRequest))
		return connect.NewResponse(resp), err
	})
	return func(ctx context.Context) error {
		_, err := evaluate(ctx, connect.NewRequest(&evaluator.EvaluateFunctionRequest{
			Image: "good:v1", ResourceList: []byte(list),
		}))
		return err
	}
}
