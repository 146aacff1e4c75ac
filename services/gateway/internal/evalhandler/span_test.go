// SPDX-License-Identifier: Apache-2.0

package evalhandler_test

import (
	"context"
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhandler"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
)

// podCatalog is a catalog whose functions run in a pod that was started for them, at the second attempt.
type podCatalog struct{ catalog }

func (podCatalog) Name() string { return "pod" }

func (c podCatalog) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	for _, pod := range []string{"fn-1", "fn-2"} {
		req.Measured.Attempt()
		req.Measured.On(evalmetrics.Leased{
			Pod: pod, Namespace: "fns", Image: req.Image.Repository + "@sha256:1", ColdStart: pod == "fn-1",
		})
	}
	return c.catalog.Evaluate(ctx, req)
}

// evaluationSpan returns the attributes of the span fn.evaluate of an evaluation by e.
func evaluationSpan(t *testing.T, e evaluation.Evaluator, image string) map[string]string {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tel := telemetry.Discard()
	tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	h := evalhandler.New(evalhandler.Config{
		Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{e},
		MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20, Telemetry: tel, History: evalhistory.New(),
	})
	_, _ = h.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
	for _, span := range spans.GetSpans() {
		if span.Name != "fn.evaluate" {
			continue
		}
		attributes := map[string]string{"status": span.Status.Code.String()}
		for _, a := range span.Attributes {
			attributes[string(a.Key)] = fmt.Sprint(a.Value.AsInterface())
		}
		return attributes
	}
	t.Fatal("no span fn.evaluate")
	return nil
}

func TestEvaluationsCanBeFoundByTheirSpans(t *testing.T) {
	tests := map[string]struct {
		reason    string
		evaluator evaluation.Evaluator
		image     string
		want      map[string]string
	}{
		"pod": {"where it ran, and how it came to that", podCatalog{}, "good:v1", map[string]string{
			"status": "Unset", "faas.name": "good:v1", "container.image.name": "example.com/good:v1",
			"container.image.repo_digests": "[example.com/good@sha256:1]", "fn.evaluator": "pod", "fn.code": "ok",
			"fn.severity": "warning", "fn.attempts": "2", "faas.coldstart": "true", "k8s.pod.name": "fn-2",
			"k8s.namespace.name": "fns", "process.exit.code": "0",
		}},
		"failure": {"what the function did", catalog{}, "broken:v1", map[string]string{
			"status": "Error", "fn.evaluator": "exec", "fn.code": "internal", "faas.coldstart": "false", "k8s.pod.name": "",
			"process.exit.code": "7",
		}},
		"not started": {"no function has run", catalog{}, "unknown:v1", map[string]string{
			"status": "Error", "fn.code": "not_found", "fn.evaluator": "", "process.exit.code": "",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := evaluationSpan(t, tc.evaluator, tc.image)
			for key, want := range tc.want {
				if got[key] != want {
					t.Errorf("%s is %q, want %q: %s", key, got[key], want, tc.reason)
				}
			}
		})
	}
}
