// SPDX-License-Identifier: Apache-2.0

package applet_test

import (
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/applet"
)

// handler serves health and a service without methods.
func handler(frame servermain.Frame) http.Handler {
	cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health}
	return rpcserve.NewHandler(cfg, rpcserve.Service{
		Name: evaluatorconnect.FunctionEvaluatorName, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			var none evaluatorconnect.UnimplementedFunctionEvaluatorHandler
			return evaluatorconnect.NewFunctionEvaluatorHandler(none, options...)
		},
	})
}

func TestProbe(t *testing.T) {
	ready := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return serve.Component{Endpoints: []serve.Endpoint{{Name: "test", Handler: handler(frame)}}}, nil
	})
	notReady := servetest.Listen(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	server := &http.Server{Handler: handler(frame), Protocols: &protocols}
	go func() { _ = server.Serve(notReady) }()
	t.Cleanup(func() { _ = server.Close() })
	closed := servetest.Listen(t)
	_ = closed.Close()

	const service = evaluatorconnect.FunctionEvaluatorName
	tests := map[string]struct {
		reason string
		args   []string
		want   int
	}{
		"serving":         {"a ready server passes", []string{"-addr", ready}, 0},
		"two dashes":      {"the tool takes both spellings", []string{"--addr=" + ready}, 0},
		"service":         {"a service can be asked for", []string{"-addr", ready, "-service", service}, 0},
		"unknown service": {"one that is not there is an error of the call", []string{"-addr", ready, "-service", "x"}, 3},
		"not serving":     {"a draining server does not pass", []string{"-addr", notReady.Addr().String()}, 4},
		"no server":       {"nor does a port without server", []string{"-addr", closed.Addr().String()}, 2},
		"no address":      {"usage", nil, 1},
		"unknown flag":    {"usage", []string{"-frobnicate"}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := applet.Probe(tc.args); got != tc.want {
				t.Errorf("Probe(%q) = %d, want %d: %s", tc.args, got, tc.want, tc.reason)
			}
		})
	}
}
