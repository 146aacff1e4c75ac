// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"

	"github.com/krm-function-runner/function-runner/libs/serve"
)

// LogErrors writes OpenTelemetry's errors to the program's log, at most one line per minute. Otherwise an unreachable
// collector would cause several lines per minute. A program must call it only once, because OpenTelemetry has a
// single, global error handler.
func (t *Telemetry) LogErrors() {
	errs := errorLog{log: t.Log, occasionally: serve.Occasionally()}
	otel.SetErrorHandler(errs)
	otel.SetLogger(logr.FromSlogHandler(boundedHandler{Handler: t.Log.Handler(), errors: errs}))
}

// errorLog logs errors of OpenTelemetry, at most one line per minute.
type errorLog struct {
	log          *slog.Logger
	occasionally func(log func(count int))
}

// Handle implements otel.ErrorHandler.
func (l errorLog) Handle(err error) {
	l.occasionally(func(count int) {
		l.log.Warn("telemetry not sent; evaluations do not need it", "error", err, "unlogged", count-1)
	})
}

// boundedHandler writes OpenTelemetry's own log lines to the program's log, at most one line per minute. It shares
// this limit with the errors of an errorLog.
type boundedHandler struct {
	slog.Handler
	errors errorLog
}

// Handle implements slog.Handler.
func (h boundedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	h.errors.occasionally(func(count int) {
		r.AddAttrs(slog.Int("unlogged", count-1))
		err = h.Handler.Handle(ctx, r)
	})
	return err
}

// WithAttrs implements slog.Handler.
func (h boundedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundedHandler{Handler: h.Handler.WithAttrs(attrs), errors: h.errors}
}

// WithGroup implements slog.Handler.
func (h boundedHandler) WithGroup(name string) slog.Handler {
	return boundedHandler{Handler: h.Handler.WithGroup(name), errors: h.errors}
}
