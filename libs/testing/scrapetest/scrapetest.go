// Package scrapetest lets a test read metrics as Prometheus does.
package scrapetest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// New returns telemetry that ends with the test, and a function that returns its metrics
// in Prometheus' text format.
func New(t testing.TB) (tel *telemetry.Telemetry, scrape func() string) {
	t.Helper()
	cfg := telemetry.Config{MetricsAddress: "127.0.0.1:0", LogFormat: "json"}
	tel, err := telemetry.New(t.Context(), "test", cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel, func() string {
		rec := httptest.NewRecorder()
		tel.Part(cfg).Endpoints[0].Handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return rec.Body.String()
	}
}
