// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestTheAttemptWithTLSIsNoFailure has a healthy registry without TLS, which is asked over TLS first, and
// one that is gone.
func TestTheAttemptWithTLSIsNoFailure(t *testing.T) {
	w := newWorld(t)
	tel, scrape := scrapetest.New(t)
	spans := tracetest.NewSpanRecorder()
	tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	w.Telemetry = tel
	w.Insecure = []string{"plain.example", "gone.example"}
	w.add(t, "plain.example").Push(t, "fn:v1", v1.Config{})
	if _, err := w.manifest(t, "plain.example/fn", "v1"); err != nil {
		t.Fatal(err)
	}
	for _, span := range spans.Ended() {
		if span.Status().Code == codes.Error {
			t.Errorf("span %s has an error: %v", span.Name(), span.Status())
		}
	}
	w.hosts["gone.example"] = "127.0.0.1:1"
	if _, err := w.manifest(t, "gone.example/fn", "v1"); err == nil {
		t.Fatal("a registry that is gone answered")
	}
	metrics := scrape()
	if strings.Contains(metrics, `{code="error",op="ping",registry="plain.example"}`) ||
		!strings.Contains(metrics, `{code="200",op="ping",registry="plain.example"} 1`) ||
		!strings.Contains(metrics, `{code="error",op="ping",registry="other"}`) {
		t.Errorf("the attempt with TLS at plain.example is counted, or a registry that is gone is not:\n%s", metrics)
	}
}
