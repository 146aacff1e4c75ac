// SPDX-License-Identifier: Apache-2.0

package rpcserve_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// TestWebSitesCallNoPort has browsers send requests for web sites, and clients that are none.
func TestWebSitesCallNoPort(t *testing.T) {
	handler := rpcserve.NewHandler(rpcserve.Config{
		Telemetry: telemetry.Discard(), Health: new(serve.Health), Hosts: rpcserve.Hosts{"fnr.example"},
	})
	for name, tc := range map[string]struct {
		host, origin, site string
		want               int
	}{
		"no browser":                     {"gateway:9445", "", "", http.StatusOK},
		"another site":                   {"localhost:9445", "https://evil.example", "cross-site", http.StatusForbidden},
		"another site, an older browser": {"127.0.0.1:9445", "https://evil.example", "", http.StatusForbidden},
		"DNS rebinding":                  {"evil.test:9445", "http://evil.test:9445", "same-origin", http.StatusForbidden},
		"DNS rebinding, without origin":  {"evil.example:9445", "", "same-origin", http.StatusForbidden},
		"its own page":                   {"localhost:9445", "http://localhost:9445", "same-origin", http.StatusOK},
		"its own page by name":           {"fnr.example", "http://fnr.example", "same-origin", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/grpc.health.v1.Health/Check", http.NoBody)
			r.Host = tc.host
			r.Header.Set("Content-Type", "application/proto")
			for header, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.site} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if forbidden := w.Code == http.StatusForbidden; forbidden != (tc.want == http.StatusForbidden) {
				t.Errorf("status %d, want %d: %s", w.Code, tc.want, w.Body)
			}
		})
	}
}
