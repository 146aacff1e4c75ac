// SPDX-License-Identifier: Apache-2.0

package rpcserve_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestRejectedCallersAreCountedAndLogged has callers of two kinds rejected, many times each.
func TestRejectedCallersAreCountedAndLogged(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	access := func(r *http.Request) (context.Context, error) {
		switch r.Header.Get("From") {
		case "":
			return nil, rpcserve.Unauthenticated("who are you")
		case "stolen":
			return nil, fault.New(fault.Denied, "spiffe://td/fn may not call this port")
		}
		return r.Context(), nil
	}
	answered := 0
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answered++ })
	handler := rpcserve.NewHandler(rpcserve.Config{
		Telemetry: tel, Health: new(serve.Health), Access: access, Port: "pod-manager",
	}, rpcserve.Service{
		Name: "x", MaxRequestBytes: 1, MaxResponseBytes: 1,
		Handler: func(...connect.HandlerOption) (string, http.Handler) { return "/", next },
	})
	for from, path := range map[string]string{
		"": "/a.Service/Method", "stolen": "/" + strings.Repeat("a", 10_000), "known": "/x",
		"probe": "/grpc.health.v1.Health/Check",
	} {
		for range 10 {
			r := httptest.NewRequest(http.MethodPost, path, http.NoBody)
			if r.Header.Set("From", from); from == "probe" {
				r.Header.Del("From")
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if from == "probe" && w.Code == http.StatusUnsupportedMediaType { // the health check's own answer
				answered++
			}
		}
	}
	for _, want := range []string{
		`fn_callers_rejected_total{port="pod-manager",reason="unauthenticated"} 10`,
		`fn_callers_rejected_total{port="pod-manager",reason="permission_denied"} 10`,
	} {
		if metrics := scrape(); !strings.Contains(metrics, want) {
			t.Errorf("no %s in %s", want, metrics)
		}
	}
	if answered != 20 || log.Count("caller rejected") != 2 || len(log.String()) > 2000 {
		t.Errorf("%d requests were answered, want 20, and the log is %s", answered, log)
	}
	for _, want := range []string{"peer=192.0.2.1", "who are you", "spiffe://td/fn may not call", "endpoint=pod-manager"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log %s", want, log)
		}
	}
}
