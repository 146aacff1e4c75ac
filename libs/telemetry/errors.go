// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// errorInterval is the minimum time between two log lines about OpenTelemetry's errors. Without it, an unreachable
// collector would cause several lines per minute.
const errorInterval = time.Minute

// LogErrors writes OpenTelemetry's errors to the program's log, at most one line per minute. A program must call it
// only once, because OpenTelemetry has a single, global error handler.
func (t *Telemetry) LogErrors() {
	errs := &errorLog{log: t.Log}
	otel.SetErrorHandler(errs)
	otel.SetLogger(logr.FromSlogHandler(boundedHandler{Handler: t.Log.Handler(), errors: errs}))
}

// errorLog logs errors of OpenTelemetry.
type errorLog struct {
	log *slog.Logger

	mu   sync.Mutex
	next time.Time // time from which the next line may be written
	left int       // number of unlogged errors since the last line
}

// Handle implements otel.ErrorHandler.
func (l *errorLog) Handle(err error) {
	if left, ok := l.admitLine(); ok {
		l.log.Warn("telemetry not sent; evaluations do not need it", "error", err, "unlogged", left)
	}
}

// admitLine reports whether a log line may be written now. If so, it also returns how many errors were not logged
// since the last line.
func (l *errorLog) admitLine() (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.next) {
		l.left++
		return 0, false
	}
	left = l.left
	l.left = 0
	l.next = now.Add(errorInterval)
	return left, true
}

// boundedHandler writes OpenTelemetry's own log lines to the program's log, at most one line per minute. It shares
// this limit with the errors of an errorLog.
type boundedHandler struct {
	slog.Handler
	errors *errorLog
}

// Handle implements slog.Handler.
func (h boundedHandler) Handle(ctx context.Context, r slog.Record) error {
	left, ok := h.errors.admitLine()
	if !ok {
		return nil
	}
	r.AddAttrs(slog.Int("unlogged", left))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h boundedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundedHandler{Handler: h.Handler.WithAttrs(attrs), errors: h.errors}
}

// WithGroup implements slog.Handler.
func (h boundedHandler) WithGroup(name string) slog.Handler {
	return boundedHandler{Handler: h.Handler.WithGroup(name), errors: h.errors}
}
