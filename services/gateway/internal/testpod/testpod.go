// SPDX-License-Identifier: Apache-2.0

// Package testpod replaces function pods in tests. It starts a server with the same RPC service as the server in a
// function pod, and each test provides the functions.
package testpod

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// Func is a function that serves the RPC service of a function pod.
type Func func(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error)

// EvaluateFunction implements the RPC service by calling f.
func (f Func) EvaluateFunction(ctx context.Context,
	req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	return f(ctx, req)
}

// Serve starts a server that calls f for each request, until the test ends. It returns the server's address. limit
// is the maximum size of requests and responses, in bytes.
func Serve(t testing.TB, limit int, f Func) string {
	t.Helper()
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return component(limit, f, nil, nil, frame), nil
	})
}

// ServeAt starts the same server as [Serve], at an address of a network in memory, for tests in virtual time.
func ServeAt(t testing.TB, network *pipenet.Network, address string, limit int, f Func) *pipenet.Host {
	t.Helper()
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	return network.Serve(t, address, newHandler(limit, f, nil, frame))
}

// ServeSecured starts the same server as [Serve], but with TLS. The server has the given identity, and accepts only
// callers whose SPIFFE IDs match the pattern callers.
func ServeSecured(t testing.TB, identity *mtls.Identity, callers string, limit int, f Func) string {
	t.Helper()
	access, err := rpcserve.Callers(identity, []string{callers})
	if err != nil {
		t.Fatal(err)
	}
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return component(limit, f, identity, access, frame), nil
	})
}

func component(
	limit int, f Func, identity *mtls.Identity, access rpcserve.Access, frame servermain.Frame,
) serve.Component {
	endpoint := serve.Endpoint{
		Name: "evaluator", Handler: newHandler(limit, f, access, frame), TLS: identity.Server(),
	}
	return serve.Component{Endpoints: []serve.Endpoint{endpoint}}
}

func newHandler(limit int, f Func, access rpcserve.Access, frame servermain.Frame) http.Handler {
	cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access, Port: "evaluator"}
	return rpcserve.NewHandler(cfg, rpcserve.Service{
		Name: evaluatorconnect.FunctionEvaluatorName, MaxRequestBytes: limit, MaxResponseBytes: limit,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return evaluatorconnect.NewFunctionEvaluatorHandler(f, options...)
		},
	})
}

// ServeFunctions starts a server for several test functions, until the test ends, and returns the server's address.
// behaviours maps each image to its function's behaviour. The binaries are written to dir. All functions share a single
// server, because the server must collect its exited child processes. Only one component of a process can do this.
func ServeFunctions(t *testing.T, dir string, behaviours map[string]string) string {
	t.Helper()
	paths := make(map[string]string, len(behaviours))
	for image, behaviour := range behaviours {
		paths[image] = conformance.Install(t, dir, behaviour)
	}
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		service, err := function.NewPod(function.ServiceConfig{
			Program: "test", Settings: function.Settings{Concurrency: 1000},
			Confinement: function.Confinement{Confine: confine.Off}, MaxMessageBytes: conformance.MaxMessageBytes,
			Wording: function.WrapperWording, Telemetry: frame.Telemetry,
		})
		if err != nil {
			return serve.Component{}, err
		}
		p := component(conformance.MaxMessageBytes, func(ctx context.Context,
			req *evaluator.EvaluateFunctionRequest,
		) (*evaluator.EvaluateFunctionResponse, error) {
			result, err := service.Evaluate(ctx, function.Evaluation{
				Image: req.GetImage(), Command: fnproc.Command{Path: paths[req.GetImage()]}, ResourceList: req.GetResourceList(),
			})
			if err != nil {
				return nil, err
			}
			return &evaluator.EvaluateFunctionResponse{ResourceList: result.ResourceList, Log: result.Log}, nil
		}, nil, nil, frame)
		p.Tasks = append(p.Tasks, service.Maintain)
		return p, nil
	})
}
