// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestLinesHaveTraceAndCaller has a function succeed and one fail, and looks for who called and in which trace, with
// the log of the real program.
func TestLinesHaveTraceAndCaller(t *testing.T) {
	dir, log := t.TempDir(), new(logtest.Log)
	tel, err := telemetry.New(t.Context(), "gateway", telemetry.Config{LogVerbosity: 2}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(t.Context()) })
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Exec: gateway.ExecConfig{
			Config: install(t, dir, "echo", "exit1"), Functions: dir,
		},
	}
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		frame.Telemetry = tel
		return gateway.New(cfg, gateway.Services{}, frame)
	})
	client := evaluatorconnect.NewFunctionEvaluatorClient(clientAt(t, "127.0.0.7"), "http://"+address, connect.WithGRPC())
	for behaviour, message := range map[string]string{"echo": "evaluated", "exit1": "evaluation failed"} {
		trace := strings.Repeat(map[string]string{"echo": "a", "exit1": "b"}[behaviour], 32)
		ctx, call := connect.NewClientContext(t.Context())
		call.RequestHeader().Set("Traceparent", "00-"+trace+"-0123456789abcdef-01")
		_, _ = client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{
			Image: image(behaviour), ResourceList: []byte(conformance.List),
		})
		var line map[string]any
		if err := json.Unmarshal([]byte(log.Line(trace)), &line); err != nil {
			t.Fatalf("%v: no line has the trace %s:\n%s", err, trace, log)
		}
		if line["msg"] != message || line["trace_id"] != trace || line["caller"] != "127.0.0.7" ||
			line["image"] != image(behaviour) {
			t.Errorf("%s has the line %v", behaviour, line)
		}
	}
}
