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

// spanExporter returns the exporter of traces that OpenTelemetry's variables configure. It returns nil if traces are
// not exported.
func spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if !isExporting("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
		return nil, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	return exporter, nameVariable("OTEL_TRACES_EXPORTER", err)
}

// metricReader returns the reader that pushes metrics as OpenTelemetry's variables configure. It returns nil if
// metrics are not pushed. It ignores the exporter "prometheus", which would open a second port for the metrics that
// our port already serves.
func metricReader(ctx context.Context) (sdkmetric.Reader, error) {
	if os.Getenv("OTEL_METRICS_EXPORTER") == "prometheus" ||
		!isExporting("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
		return nil, nil
	}
	reader, err := autoexport.NewMetricReader(ctx)
	return reader, nameVariable("OTEL_METRICS_EXPORTER", err)
}

// nameVariable adds to err the name and the value of the variable that selects the exporter.
func nameVariable(variable string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s=%q: %w: check the OTEL_ variables", variable, os.Getenv(variable), err)
}

// isExporting reports whether to export a signal (traces or metrics). If no variable is set, it returns false,
// whereas OpenTelemetry itself would export to localhost.
func isExporting(exporter, endpoint string) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv(exporter) == "none" {
		return false
	}
	return os.Getenv(exporter) != "" || os.Getenv(endpoint) != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// prometheusReader returns a reader and the handler for Prometheus. The handler serves the reader's metrics and the
// metrics of the Go runtime and of the process. It logs a metric that cannot be served, and still serves other
// metrics.
func prometheusReader(log *slog.Logger) (sdkmetric.Reader, http.Handler, error) {
	// The Go runtime's metrics have their own registry. A registry runs all its collectors in concurrent goroutines,
	// and the metric of goroutines would count them. The two registries run one after the other.
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
