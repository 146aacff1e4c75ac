// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

// TestStatusPageHasItsOwnPort serves the page only where it is asked for.
func TestStatusPageHasItsOwnPort(t *testing.T) {
	cfg := gateway.Config{
		Address: ":0", MaxMessageBytes: conformance.MaxMessageBytes, DefaultImagePrefix: "example.com",
		DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
	}
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	component, err := gateway.New(cfg, gateway.Services{}, frame)
	if err != nil || len(component.Endpoints) != 1 {
		t.Fatalf("without an address: %d ports, %v", len(component.Endpoints), err)
	}
	cfg.StatusAddress = "127.0.0.1:0"
	cfg.StatusHosts = []string{"status.example"}
	component, err = gateway.New(cfg, gateway.Services{}, frame)
	if err != nil || len(component.Endpoints) != 2 || component.Endpoints[1].Address != cfg.StatusAddress {
		t.Fatalf("with an address: %+v, %v", component.Endpoints, err)
	}
	answers := make([]int, 2)
	for i, endpoint := range component.Endpoints {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://status.example/", http.NoBody)
		endpoint.Handler.ServeHTTP(recorder, request)
		answers[i] = recorder.Code
	}
	if answers[0] == http.StatusOK || answers[1] != http.StatusOK {
		t.Errorf("the callers' port answers %d, that of the page %d", answers[0], answers[1])
	}
	cfg.StatusAddress = "9447"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "StatusAddress") {
		t.Errorf("a port without a colon: %v", err)
	}
}

// TestCallersFindTheirEvaluations sends evaluations with a trace each, and asks the gateway for them.
func TestCallersFindTheirEvaluations(t *testing.T) {
	dir := t.TempDir()
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{Config: install(t, dir, "echo"), Functions: dir},
	}
	address := startConfigured(t, cfg)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	evaluations := evaluatorconnect.NewFunctionEvaluatorClient(client, "http://"+address)
	status := gatewayv1connect.NewStatusServiceClient(client, "http://"+address)
	evaluate := func(digit, list string) []*gatewayv1.Evaluation {
		t.Helper()
		trace := strings.Repeat(digit, 32)
		ctx, call := connect.NewClientContext(t.Context())
		call.RequestHeader().Set("Traceparent", "00-"+trace+"-0123456789abcdef-01")
		_, _ = evaluations.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{
			Image: image("echo"), ResourceList: []byte(list),
		})
		found, err := status.ListEvaluations(t.Context(), &gatewayv1.ListEvaluationsRequest{TraceId: trace})
		if err != nil {
			t.Fatal(err)
		}
		return found.GetEvaluations()
	}
	good := evaluate("a", "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n")
	if len(good) != 1 || good[0].GetCode() != "ok" || good[0].GetEvaluator() != "exec" {
		t.Fatalf("found %v, want one evaluation that succeeded", good)
	}
	var names []string
	for _, p := range good[0].GetPhases() {
		names = append(names, p.GetName())
	}
	if got := strings.Join(names, " "); got != "resolve queue run" {
		t.Errorf("phases %q", got)
	}
	if bad := evaluate("b", "secret: hunter2"); len(bad) != 1 || bad[0].GetReason() != "the resource list is not valid" {
		t.Errorf("found %v, want one without the list", bad)
	}
	now, err := status.GetStatus(t.Context(), &gatewayv1.GetStatusRequest{})
	if err != nil || len(now.GetFunctions()) == 0 || now.GetFunctions()[0].GetSamples() != 1 || now.GetVersion() == "" {
		t.Errorf("status %v, %v", now, err)
	}
	if images := now.GetImages(); len(images) != 1 || images[0] != image("echo") {
		t.Errorf("the gateway serves %q, want %q", images, image("echo"))
	}
	_, err = status.ListEvaluations(t.Context(), &gatewayv1.ListEvaluationsRequest{TraceId: "../etc"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an id that is none: %v", err)
	}
}

// TestEvaluationsAreListedInBoundedNumber asks a gateway that remembers many evaluations for all of them.
func TestEvaluationsAreListedInBoundedNumber(t *testing.T) {
	remembered := evalhistory.New()
	for range 300 {
		remembered.Add("echo:v1", &gatewayv1.Evaluation{Code: evalhistory.OK})
	}
	none := func() []string { return nil }
	s := status.New(remembered, nil, "gateway-0", none, none)
	for asked, want := range map[int32]int{0: 100, -1: 100, 1: 1, 200: 200, 1000: 300} {
		got, err := s.ListEvaluations(t.Context(), &gatewayv1.ListEvaluationsRequest{Max: asked})
		if err != nil || len(got.GetEvaluations()) != want {
			t.Errorf("max %d: %d evaluations, %v, want %d", asked, len(got.GetEvaluations()), err, want)
		}
	}
}
