// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// newLogger returns a logger that writes to w and adds the ids of the current trace and span to each line.
func newLogger(cfg Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level(cfg.LogVerbosity), ReplaceAttr: formatAttr}
	if writesText(cfg.LogFormat, w) {
		return slog.New(traceHandler{slog.NewTextHandler(w, options)})
	}
	return slog.New(traceHandler{slog.NewJSONHandler(w, options)})
}

// maxValueBytes is the maximum length of a value in a log line or a span. We shorten longer values, because callers
// and functions may send megabytes.
const maxValueBytes = 8 << 10

// writesText reports whether log lines are text instead of JSON. The format "auto" means text if w is a terminal.
func writesText(format string, w io.Writer) bool {
	file, ok := w.(*os.File)
	if format != "auto" || !ok {
		return format == "text"
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// formatAttr formats a log attribute. It omits empty texts and an "unlogged" count of zero, and converts durations to
// seconds. It also shortens texts and escapes hidden characters in them, because callers and functions could otherwise
// flood the log or forge log lines.
func formatAttr(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case string:
		if value == "" {
			return slog.Attr{}
		}
		return slog.String(a.Key, excerpt.Visible(excerpt.Middle(value, maxValueBytes)))
	case error:
		return slog.String(a.Key, excerpt.Visible(excerpt.Middle(value.Error(), maxValueBytes)))
	case time.Duration:
		return slog.Float64(a.Key, value.Seconds())
	case int64:
		if value == 0 && a.Key == "unlogged" {
			return slog.Attr{}
		}
	}
	return a
}

// LevelDetail is the log level of verbosity 3, between info and debug. It adds the SHA-256 of input and output to
// the log lines of evaluations.
const LevelDetail = slog.LevelInfo - 2

// level converts Porch's verbosity to a log level. The default verbosity is 2, which logs information. Verbosity 4 and
// higher logs debug lines.
func level(verbosity int) slog.Level {
	switch {
	case verbosity <= 0:
		return slog.LevelError
	case verbosity == 1:
		return slog.LevelWarn
	case verbosity == 2:
		return slog.LevelInfo
	case verbosity == 3:
		return LevelDetail
	default:
		return slog.LevelDebug
	}
}

// traceHandler adds the trace id and the span id to each log record, if the record's context contains a span.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}

// LogErrors writes OpenTelemetry's errors to the program's log, at most one line per minute. Without this limit, an
// unreachable collector would cause several lines per minute. Call LogErrors only once per program, because
// OpenTelemetry has a single, global error handler.
func (t *Telemetry) LogErrors() {
	handle, internal := newErrorLogs(t.Log)
	otel.SetErrorHandler(handle)
	otel.SetLogger(internal)
}

// newErrorLogs returns an error handler and a logger for OpenTelemetry, which together write at most one line per
// minute. The logger writes OpenTelemetry's internal errors and ignores its information.
func newErrorLogs(log *slog.Logger) (handle otel.ErrorHandlerFunc, internal logr.Logger) {
	var lines serve.LogLimiter
	handle = func(err error) {
		lines.Limit("", func(count int) {
			log.Warn("telemetry not sent; evaluations do not need it", "error", err, "unlogged", count-1)
		})
	}
	internal = funcr.New(func(_, text string) {
		lines.Limit("", func(count int) { log.Error("OpenTelemetry failed", "error", text, "unlogged", count-1) })
	}, funcr.Options{})
	return handle, internal
}
