// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// tagLister is an image-resolver that knows one repository with tags and one without.
type tagLister struct {
	imageresolverv1connect.UnimplementedImageResolverServiceHandler
}

func (tagLister) ListTags(
	_ context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	switch req.GetRepository() {
	case "example.com/fns/remote":
		return &imageresolverv1.ListTagsResponse{Tags: []string{"v1.0.0", "v1.1.0"}}, nil
	case "example.com/fns/bare":
		return new(imageresolverv1.ListTagsResponse), nil
	default:
		return nil, fault.New(fault.Precondition, "the registry says: denied")
	}
}

func newTagLister(frame program.Frame) (serve.Component, error) {
	cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health}
	handler, err := rpcserve.NewHandler(cfg, rpcserve.Service{
		Name: imageresolverv1connect.ImageResolverServiceName, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return imageresolverv1connect.NewImageResolverServiceHandler(tagLister{}, options...)
		},
	})
	return serve.Component{Endpoints: []serve.Endpoint{{Name: "image-resolver", Handler: handler}}}, err
}

func TestConstraintsAreAnsweredByTheImageResolver(t *testing.T) {
	cfg := gateway.Config{
		MaxMessageBytes: 1 << 20, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
		ImageResolver: "http://" + servetest.Start(t, newTagLister),
	}
	address := servetest.Start(t, func(frame program.Frame) (serve.Component, error) {
		services, err := gateway.Connect(cfg, frame)
		if err != nil {
			return serve.Component{}, err
		}
		t.Cleanup(services.Close)
		return gateway.New(cfg, services, frame)
	})
	c := newCaller(t, address)
	st := status.Convert(c.evaluate(t, "example.com/fns/remote", "^1.0"))
	const notServed = "example.com/fns/remote:v1.1.0 (asked: none, all are disabled)"
	if st.Code() != codes.NotFound || !strings.Contains(st.Message(), notServed) {
		t.Errorf("got %v, want NotFound for the highest tag", st.Err())
	}
	st = status.Convert(c.evaluate(t, "example.com/fns/secret", "^1.0"))
	if st.Code() != codes.FailedPrecondition || !strings.Contains(st.Message(), "the registry says: denied") {
		t.Errorf("got %v, want the registry's own words", st.Err())
	}
	st = status.Convert(c.evaluate(t, "example.com/fns/bare", "^1.0"))
	if st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), "it has no tags") {
		t.Errorf("got %v, want InvalidArgument: the next evaluator would be tried after NotFound", st.Err())
	}
}
