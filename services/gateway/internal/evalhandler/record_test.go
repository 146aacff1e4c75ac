// SPDX-License-Identifier: Apache-2.0

package evalhandler_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhandler"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
)

// remembered returns what the history has of an evaluation.
func remembered(t *testing.T, e evaluation.Evaluator, image, list string) *gatewayv1.Evaluation {
	t.Helper()
	h := evalhistory.New()
	door := evalhandler.New(evalhandler.Config{
		Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{e}, History: h,
		MaxMessageBytes: 1 << 20, MemoryBudgetBytes: 1 << 20, Telemetry: telemetry.Discard(),
	})
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4},
	}))
	_, _ = door.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
	found := h.Evaluations(evalhistory.Select{TraceID: "01020300000000000000000000000000"})
	if len(found) != 1 {
		t.Fatalf("remembered %v, want one evaluation of the caller's trace", found)
	}
	return found[0]
}

func TestEvaluationsAreRemembered(t *testing.T) {
	got := remembered(t, podCatalog{}, "good:v1", list)
	if got.GetCode() != "ok" || got.GetReason() != "" || got.GetResolved() != "example.com/good:v1" ||
		got.GetEvaluator() != "pod" || got.GetPod() != "fn-2" || !got.GetColdStart() || got.GetAttempts() != 2 ||
		got.GetRequestBytes() != int64(len(list)) || len(got.GetPhases()) == 0 || got.GetPhases()[0].GetName() != "resolve" {
		t.Errorf("remembered %s", prototext.Format(got))
	}
}

// TestHistoryHasNothingOfLists evaluates what puts parts of lists and of outputs into errors.
func TestHistoryHasNothingOfLists(t *testing.T) {
	tests := map[string]struct{ image, list, want string }{
		"function failed": {"broken:v1", list, "the function failed with exit code 7"},
		"broken list": {
			"good:v1", "kind: ResourceList\n" + secret + ": 1\n" + secret + ": 2\n", "the resource list is not valid",
		},
		"broken answer": {"hostile:v1", list, "the pod's answer is not a valid resource list"},
		"unknown":       {"unknown:v1", list, "no enabled evaluator serves"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := remembered(t, catalog{}, tc.image, tc.list)
			if text := prototext.Format(got); strings.Contains(text, secret) || !strings.Contains(got.GetReason(), tc.want) {
				t.Errorf("remembered %s, want %q", text, tc.want)
			}
		})
	}
}

// failing ends each evaluation with a failure of the reason.
type failing struct{ reason function.Reason }

func (failing) Name() string { return "exec" }

func (f failing) Evaluate(context.Context, evaluation.Request) (evaluation.Response, error) {
	failure := &functionrunnerv1.FunctionFailure{Reason: f.reason, Signal: "killed", Stderr: secret}
	return evaluation.Response{}, fault.New(fault.Internal, "failed: %w", function.Received(secret, failure))
}

// TestReasonsAreForReaders has each reason, and one of a later version.
func TestReasonsAreForReaders(t *testing.T) {
	reasons := map[string]bool{}
	for value := range functionrunnerv1.FunctionFailure_Reason_name {
		reason := function.Reason(value)
		if reason == function.NotStarted { // in the words of its error
			continue
		}
		// Long logs are cut, so no program sends this reason since. It stays in the contract.
		if value == int32(functionrunnerv1.FunctionFailure_REASON_LOG_TOO_LARGE) {
			continue
		}
		got := remembered(t, failing{reason}, "fn:v1", list).GetReason()
		if reasons[got] || strings.Contains(got, "REASON_") || strings.Contains(got, secret) {
			t.Errorf("%s is remembered as %q", reason, got)
		}
		reasons[got] = true
	}
	if got := remembered(t, failing{1000}, "fn:v1", list).GetReason(); got != "the function failed" {
		t.Errorf("a reason of a later version is remembered as %q", got)
	}
}
