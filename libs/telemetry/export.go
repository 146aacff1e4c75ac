// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanExporter returns the trace exporter that OpenTelemetry's environment variables configure, or nil if they
// configure no exporter.
func spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if !isExporting("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
		return nil, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	return exporter, nameVariable("OTEL_TRACES_EXPORTER", err)
}

// metricReader returns the reader that pushes metrics to a collector, or nil if OpenTelemetry's environment variables
// configure none. It ignores the exporter "prometheus", which would open another port for metrics that our metrics
// port already serves.
func metricReader(ctx context.Context) (sdkmetric.Reader, error) {
	if os.Getenv("OTEL_METRICS_EXPORTER") == "prometheus" ||
		!isExporting("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
		return nil, nil
	}
	reader, err := autoexport.NewMetricReader(ctx)
	return reader, nameVariable("OTEL_METRICS_EXPORTER", err)
}

// nameVariable adds the name and the value of an exporter's environment variable to the exporter's error.
func nameVariable(variable string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s=%q: %w: check the OTEL_ variables", variable, os.Getenv(variable), err)
}

// isExporting reports whether environment variables enable an export. The arguments are the names of two variables: for
// the exporter and for its endpoint. If no variable is set, isExporting returns false. OpenTelemetry has another
// default, which is to export to localhost.
func isExporting(exporter, endpoint string) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv(exporter) == "none" {
		return false
	}
	return os.Getenv(exporter) != "" || os.Getenv(endpoint) != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// prometheusReader returns a reader of metrics, and the HTTP handler that Prometheus scrapes. The handler also serves
// the metrics of the Go runtime and of the process. If the handler cannot serve a metric, it logs the error and serves
// the other metrics.
func prometheusReader(log *slog.Logger) (sdkmetric.Reader, http.Handler, error) {
	// We collect the metrics of the Go runtime in a separate registry, before the other metrics. The collection of the
	// other metrics starts goroutines, which the number of goroutines would otherwise include.
	runtime, others := prometheus.NewRegistry(), prometheus.NewRegistry()
	runtime.MustRegister(collectors.NewGoCollector())
	others.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(others), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	return reader, promhttp.HandlerFor(prometheus.Gatherers{runtime, others}, promhttp.HandlerOpts{
		ErrorHandling:     promhttp.ContinueOnError,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelError),
		EnableOpenMetrics: true, // the only text format with exemplars
	}), nil
}

// Seconds contains the bounds of histogram buckets for durations, from a millisecond to the longest evaluation.
var Seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// Bytes contains the bounds of histogram buckets for sizes, from a small resource list to the maximum message.
var Bytes = []float64{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 6 << 20, 16 << 20}

// rpcBuckets returns a view with histogram buckets for RPC durations. OpenTelemetry's default buckets end at 10
// seconds, but evaluations may last minutes.
func rpcBuckets() sdkmetric.View {
	return sdkmetric.NewView(sdkmetric.Instrument{Name: "rpc.*.duration", Unit: "s"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: Seconds}})
}
