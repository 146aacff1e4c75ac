// SPDX-License-Identifier: Apache-2.0

// Package telemetry sets up the traces, metrics and logs of a program.
//
// OpenTelemetry's environment variables configure the receivers of traces and metrics. By default, the program sends
// neither. Prometheus can scrape the metrics from a port of the program. Log lines contain the id of their trace.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/version"
)

// Config contains the telemetry settings that OpenTelemetry's environment variables do not cover.
type Config struct {
	// MetricsAddress is the address that Prometheus scrapes, as `host:port`, or `off`.
	MetricsAddress string `split_words:"true" default:":9464"`
	// LogVerbosity is 0 (errors) to 5 (everything), as in Porch. 3 adds the SHA-256 of input and output to the lines
	// of evaluations.
	LogVerbosity int `split_words:"true" default:"2"`
	// LogFormat is `auto` (text on a terminal, JSON elsewhere), `json` or `text`.
	LogFormat string `split_words:"true" default:"auto"`
}

// off is the value of MetricsAddress that disables the metrics port.
const off = "off"

// Validate checks the settings.
func (c Config) Validate() error {
	var checks config.Checks
	checks.That(c.MetricsAddress != "", "MetricsAddress", c.MetricsAddress, `host:port, or "off"`)
	checks.That(c.LogVerbosity >= 0 && c.LogVerbosity <= 5, "LogVerbosity", c.LogVerbosity, "0 to 5")
	checks.That(slices.Contains([]string{"auto", "json", "text"}, c.LogFormat), "LogFormat", c.LogFormat,
		`"auto", "json" or "text"`)
	return checks.Err()
}

// Telemetry contains the logger, the tracers and the meters of a program. Pass it to components explicitly, because
// this project does not use OpenTelemetry's global providers.
type Telemetry struct {
	Log        *slog.Logger
	Tracers    trace.TracerProvider
	Meters     metric.MeterProvider
	Propagator propagation.TextMapPropagator

	metrics  http.Handler
	shutdown []func(context.Context) error
}

// New sets up telemetry for the named program, which logs to w. The caller must call [Telemetry.Shutdown].
func New(ctx context.Context, name string, cfg Config, w io.Writer) (*Telemetry, error) {
	res, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(name),
			semconv.ServiceVersion(version.String())), resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("set up telemetry: describe this process: %w", err)
	}
	t := &Telemetry{
		Log:        newLogger(cfg, w).With("service", name),
		Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
	if err := t.addTraces(ctx, res); err != nil {
		return nil, err
	}
	if err := t.addMetrics(ctx, cfg, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

func (t *Telemetry) addTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := spanExporter(ctx)
	if err != nil {
		return fmt.Errorf("set up traces: %w", err)
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(res), sdktrace.WithRawSpanLimits(spanLimits())}
	if exporter == nil {
		// Without an exporter, we record no spans. We still log the trace ids of callers and pass the ids on.
		options = append(options, sdktrace.WithSampler(sdktrace.NeverSample()))
	} else {
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.Tracers = provider
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

// spanLimits returns the limits of spans from OpenTelemetry's environment variables. If they set no limit for the
// length of values, the limit is maxValueBytes.
func spanLimits() sdktrace.SpanLimits {
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = maxValueBytes
	}
	return limits
}

func (t *Telemetry) addMetrics(ctx context.Context, cfg Config, res *resource.Resource) error {
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithView(rpcBuckets())}
	if cfg.MetricsAddress != off { // OpenTelemetry measures nothing without a reader
		scraped, handler, err := prometheusReader(t.Log)
		if err != nil {
			return fmt.Errorf("set up metrics: %w", err)
		}
		t.metrics = handler
		options = append(options, sdkmetric.WithReader(scraped))
	}
	pushed, err := metricReader(ctx)
	if err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	if pushed != nil {
		options = append(options, sdkmetric.WithReader(pushed))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.Meters = provider
	t.shutdown = append(t.shutdown, provider.Shutdown)
	buildInfo(provider)
	return nil
}

// buildInfo adds the metric fn.build.info, whose labels are the versions of the program and of Go.
func buildInfo(provider metric.MeterProvider) {
	labels := metric.WithAttributes(
		attribute.String("version", version.String()), attribute.String("goversion", runtime.Version()))
	Must(provider.Meter("telemetry").Int64ObservableGauge("fn.build.info",
		metric.WithDescription("1, with the versions of the program and of Go. Labels: version, goversion."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(1, labels); return nil })))
}

// Must returns the new metric created. It panics if err is not nil. Names, units and bounds of metrics are constants,
// so an error is a defect of the program.
func Must[T any](created T, err error) T {
	if err != nil {
		panic("telemetry: create a metric: " + err.Error())
	}
	return created
}

// Observe returns an option for a gauge. OpenTelemetry calls the given function to get the gauge's current value.
func Observe[N int | int64](value func() N) metric.Int64ObservableGaugeOption {
	return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(value()))
		return nil
	})
}

// Bool returns 1 for true and 0 for false, for use as the value of a gauge or as a sort key.
func Bool(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}

// Shutdown sends the remaining traces and metrics until ctx is done. It sends both concurrently, so that slow sending
// of traces does not use up the time for metrics, and vice versa.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	errs := make([]error, len(t.shutdown))
	var stopping sync.WaitGroup
	for i, stop := range t.shutdown {
		stopping.Go(func() { errs[i] = stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// Component returns the component that serves metrics to Prometheus. The component is empty if MetricsAddress is
// "off".
func (t *Telemetry) Component(cfg Config) serve.Component {
	if cfg.MetricsAddress == off {
		return serve.Component{}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.metrics)
	return serve.Component{Endpoints: []serve.Endpoint{{Name: "metrics", Address: cfg.MetricsAddress, Handler: mux}}}
}

// Interceptor returns an interceptor that traces and measures RPCs, for servers and for clients.
func (t *Telemetry) Interceptor() connect.Interceptor {
	return Must(otelconnect.NewInterceptor(
		otelconnect.WithTracerProvider(t.Tracers),
		otelconnect.WithMeterProvider(t.Meters),
		otelconnect.WithPropagator(t.Propagator),
		// We continue the traces of callers, because we trust callers inside the cluster.
		otelconnect.WithTrustRemote(),
	))
}

// Discard returns a Telemetry that drops all traces, metrics and logs. It is for tests and tools.
func Discard() *Telemetry {
	return &Telemetry{
		Log:        slog.New(slog.DiscardHandler),
		Tracers:    sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
		Meters:     sdkmetric.NewMeterProvider(),
		Propagator: propagation.TraceContext{},
		metrics:    http.NotFoundHandler(),
	}
}
