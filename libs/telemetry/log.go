// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// newLogger returns a logger that writes to w and adds trace ids to its lines.
func newLogger(cfg Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level(cfg.LogVerbosity), ReplaceAttr: formatAttr}
	if writesText(cfg.LogFormat, w) {
		return slog.New(traceHandler{slog.NewTextHandler(w, options)})
	}
	return slog.New(traceHandler{slog.NewJSONHandler(w, options)})
}

// maxValueBytes is the maximum length of a value in a log line or in a span. Values from callers and functions may
// have megabytes.
const maxValueBytes = 8 << 10

// writesText reports whether log lines to w are text. The format "auto" means text if w is a terminal, which
// writesText recognizes as a character device.
func writesText(format string, w io.Writer) bool {
	file, ok := w.(*os.File)
	if format != "auto" || !ok {
		return format == "text"
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// formatAttr returns an attribute as it is written to the log. It omits empty texts and an "unlogged" count of zero.
// It shortens texts and escapes hidden characters in them, because some texts come from callers and functions. It
// converts durations to seconds.
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

// LevelDetail is the level of verbosity 3, at which log lines of evaluations contain the hashes of their lists.
const LevelDetail = slog.LevelInfo - 2

// level maps Porch's verbosity to a level. Verbosity 2 is the default and shows information; 4 and above show
// debug lines.
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

// traceHandler adds the trace id and the span id in a record's context to the record.
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
