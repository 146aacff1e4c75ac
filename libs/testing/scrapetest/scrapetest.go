// SPDX-License-Identifier: Apache-2.0

// Package scrapetest reads a program's metrics in tests, in the way that Prometheus does.
package scrapetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
)

// New returns a Telemetry for a test, and a function that returns its metrics in Prometheus' text format. The
// Telemetry stops after the test. The test fails if a metric cannot be served.
func New(t testing.TB) (tel *telemetry.Telemetry, scrape func() string) {
	t.Helper()
	cfg := telemetry.Config{MetricsAddress: "127.0.0.1:0", LogFormat: "json"}
	log := new(logtest.Log)
	tel, err := telemetry.New(t.Context(), "test", cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel, func() string {
		rec := httptest.NewRecorder()
		tel.Component(cfg).Endpoints[0].Handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if complaint := log.Line("gathering metrics"); rec.Code != http.StatusOK || complaint != "" {
			t.Errorf("metrics with status %d: %s", rec.Code, complaint)
		}
		return rec.Body.String()
	}
}
