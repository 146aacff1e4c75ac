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

// spanExporter returns where OpenTelemetry's variables send traces, or nil.
func spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if !exporting("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
		return nil, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	return exporter, naming("OTEL_TRACES_EXPORTER", err)
}

// metricReader returns where OpenTelemetry's variables push metrics, or nil. The
// value "prometheus" would open a second port for what ours serves already.
func metricReader(ctx context.Context) (sdkmetric.Reader, error) {
	if os.Getenv("OTEL_METRICS_EXPORTER") == "prometheus" ||
		!exporting("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
		return nil, nil
	}
	reader, err := autoexport.NewMetricReader(ctx)
	return reader, naming("OTEL_METRICS_EXPORTER", err)
}

// naming adds to err the variable that chose the exporter, and its value.
func naming(variable string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s=%q: %w: check the OTEL_ variables", variable, os.Getenv(variable), err)
}

// exporting says whether a signal is to be exported at all. OpenTelemetry's own
// default, when nothing is set, is to send everything to localhost; ours is off.
func exporting(exporter, endpoint string) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv(exporter) == "none" {
		return false
	}
	return os.Getenv(exporter) != "" || os.Getenv(endpoint) != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// prometheusReader returns a reader and the handler that shows what it read,
// together with the Go runtime's and the process's own metrics. A metric that cannot be
// shown is logged, and does not hide the others.
func prometheusReader(log *slog.Logger) (sdkmetric.Reader, http.Handler, error) {
	// A registry asks all its collectors at a time, several after each other: the runtime's
	// goroutines are counted when none of those are there that look after other metrics.
	runtime, others := prometheus.NewRegistry(), prometheus.NewRegistry()
	runtime.MustRegister(collectors.NewGoCollector())
	others.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(others), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	return reader, promhttp.HandlerFor(prometheus.Gatherers{runtime, others}, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelError),
	}), nil
}
