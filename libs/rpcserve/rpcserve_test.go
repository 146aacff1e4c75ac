// SPDX-License-Identifier: Apache-2.0

package rpcserve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// moody fails in the way that the image says.
type moody struct{}

func (moody) EvaluateFunction(_ context.Context, req *evaluator.EvaluateFunctionRequest) (
	*evaluator.EvaluateFunctionResponse, error,
) {
	switch req.GetImage() {
	case "panic":
		panic("a defect")
	case "refuse":
		return nil, fault.New(fault.Denied, "refused")
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

// newMoody returns moody as it is served, with messages of up to maxBytes.
func newMoody(maxBytes int) http.Handler {
	cfg := rpcserve.Config{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	return rpcserve.NewHandler(cfg, rpcserve.Service{
		Name: evaluatorconnect.FunctionEvaluatorName, MaxRequestBytes: maxBytes, MaxResponseBytes: maxBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return evaluatorconnect.NewFunctionEvaluatorHandler(moody{}, options...)
		},
	})
}

func TestErrorsBecomeCodes(t *testing.T) {
	server := httptest.NewServer(newMoody(1 << 10))
	defer server.Close()
	client := evaluatorconnect.NewFunctionEvaluatorClient(server.Client(), server.URL)
	tests := map[string]struct {
		reason string
		req    *evaluator.EvaluateFunctionRequest
		want   connect.Code
	}{
		"class": {
			"a fault's class becomes its code", &evaluator.EvaluateFunctionRequest{Image: "refuse"},
			connect.CodePermissionDenied,
		},
		"panic": {
			"one request fails, the server goes on", &evaluator.EvaluateFunctionRequest{Image: "panic"},
			connect.CodeInternal,
		},
		"too large": {
			"messages are bounded", &evaluator.EvaluateFunctionRequest{ResourceList: make([]byte, 2<<10)},
			connect.CodeResourceExhausted,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := client.EvaluateFunction(t.Context(), tc.req); connect.CodeOf(err) != tc.want {
				t.Errorf("error %v, want code %v: %s", err, tc.want, tc.reason)
			}
			if _, err := client.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{}); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
