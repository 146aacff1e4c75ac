// Package scrapetest lets a test read metrics as Prometheus does.
package scrapetest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// New returns telemetry that ends with the test, and a function that returns its metrics
// in Prometheus' text format. The test fails if one of them cannot be shown.
func New(t testing.TB) (tel *telemetry.Telemetry, scrape func() string) {
	t.Helper()
	cfg := telemetry.Config{MetricsAddress: "127.0.0.1:0", LogFormat: "json"}
	log := new(logged)
	tel, err := telemetry.New(t.Context(), "test", cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel, func() string {
		rec := httptest.NewRecorder()
		tel.Part(cfg).Endpoints[0].Handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if complaint := log.line("gathering metrics"); rec.Code != http.StatusOK || complaint != "" {
			t.Errorf("metrics with status %d: %s", rec.Code, complaint)
		}
		return rec.Body.String()
	}
}

// logged keeps what is written to a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// line returns a line with that in it, or nothing.
func (l *logged) line(with string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		if bytes.Contains(line, []byte(with)) {
			return string(line)
		}
	}
	return ""
}
