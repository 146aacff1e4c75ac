// SPDX-License-Identifier: Apache-2.0

// Package fntest serves Go functions as KRM functions over gRPC, so that tests of clients need no real gateway.
package fntest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// Function is a KRM function in Go, which a test gateway runs instead of an image.
type Function func(ctx context.Context,
	req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error)

// Gateway is a test gateway. It maps names of images to Go functions.
type Gateway map[string]Function

// EvaluateFunction runs the Go function of an image. As at a real gateway, an unknown image is a NotFound error.
func (g Gateway) EvaluateFunction(ctx context.Context,
	req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	f, ok := g[req.GetImage()]
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("function %q not found", req.GetImage()))
	}
	return f(ctx, req)
}

// Service registers an additional gRPC service at a test gateway, such as the list of function pods.
type Service func(*http.ServeMux)

// Pods returns the service that lists function pods. If pods is nil, the test gateway runs no function pods.
func Pods(pods lease.Manager) Service {
	return func(mux *http.ServeMux) {
		if pods != nil {
			mux.Handle(podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(context.Background, pods)))
		}
	}
}

// Status returns the gRPC service that reports a gateway's activity.
func Status(status gatewayv1connect.StatusServiceHandler) Service {
	return func(mux *http.ServeMux) { mux.Handle(gatewayv1connect.NewStatusServiceHandler(status)) }
}

// Serve starts the test gateway without TLS, returns its loopback address, and stops it at the test's end.
func (g Gateway) Serve(tb testing.TB, services ...Service) string {
	tb.Helper()
	server := g.server(services...)
	server.Start()
	tb.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// ServeTLS is Serve with TLS. The returned server contains the address and the certificate.
func (g Gateway) ServeTLS(tb testing.TB) *httptest.Server {
	tb.Helper()
	server := g.server()
	server.EnableHTTP2 = true
	server.StartTLS()
	tb.Cleanup(server.Close)
	return server
}

func (g Gateway) server(services ...Service) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle(evaluatorconnect.NewFunctionEvaluatorHandler(g))
	for _, add := range services {
		add(mux)
	}
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetHTTP2(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	return server
}

// Process returns a [Function] that passes each input to the argument process, with kyaml's function framework.
func Process(process framework.ResourceListProcessorFunc) Function {
	return processBy(func(list *kio.ByteReadWriter) error { return framework.Execute(process, list) })
}

// ProcessOld is like Process, but imitates a function with an old SDK. Two annotations of each resource contain the
// path of the resource's file. Old SDKs change only one of the two annotations. ProcessOld therefore does not use
// kyaml's framework, which would copy the change to the other annotation.
func ProcessOld(process framework.ResourceListProcessorFunc) Function {
	return processBy(func(list *kio.ByteReadWriter) error {
		items, err := list.Read()
		if err != nil {
			return err
		}
		resources := &framework.ResourceList{Items: items, FunctionConfig: list.FunctionConfig}
		return errors.Join(process(resources), list.Write(resources.Items))
	})
}

func processBy(process func(*kio.ByteReadWriter) error) Function {
	return func(_ context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
		var out bytes.Buffer
		in := bytes.NewReader(req.GetResourceList())
		list := &kio.ByteReadWriter{Reader: in, Writer: &out, KeepReaderAnnotations: true}
		if err := process(list); err != nil {
			return nil, connect.NewError(connect.CodeInternal, err)
		}
		return &evaluator.EvaluateFunctionResponse{ResourceList: out.Bytes()}, nil
	}
}

// Reply returns a function that returns the same output and log for every input.
func Reply(output, log string) Function {
	return func(context.Context, *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
		return &evaluator.EvaluateFunctionResponse{ResourceList: []byte(output), Log: []byte(log)}, nil
	}
}

// Fail returns a function whose evaluation fails with the given gRPC code, message and error details.
func Fail(code connect.Code, message string, details ...proto.Message) Function {
	return func(context.Context, *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
		cerr := connect.NewError(code, errors.New(message))
		for _, d := range details {
			detail, err := connect.NewErrorDetail(d)
			if err != nil {
				return nil, err
			}
			cerr.AddDetail(detail)
		}
		return nil, cerr
	}
}

// Hang is a function that never answers.
func Hang(ctx context.Context, _ *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
