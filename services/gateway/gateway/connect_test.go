// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
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

func newTagLister(frame servermain.Frame) (serve.Component, error) {
	access, err := rpcserve.Callers(frame.Identity, []string{"spiffe://function-runner/gateway"})
	if err != nil {
		return serve.Component{}, err
	}
	cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access}
	handler := rpcserve.NewHandler(cfg, rpcserve.Service{
		Name: imageresolverv1connect.ImageResolverServiceName, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return imageresolverv1connect.NewImageResolverServiceHandler(tagLister{}, options...)
		},
	})
	endpoint := serve.Endpoint{Name: "image-resolver", Handler: handler, TLS: frame.Identity.Server()}
	return serve.Component{Endpoints: []serve.Endpoint{endpoint}}, nil
}

// TestServicesProveWhoTheyAre has gateways and image-resolvers with certificates of several IDs.
func TestServicesProveWhoTheyAre(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	const ours, theirs = "spiffe://function-runner/gateway", "spiffe://function-runner/image-resolver"
	const other = "spiffe://function-runner/function/x"
	// Without an image-resolver to trust, no tag is found: the attempts end with the deadline or before it.
	tests := map[string]struct {
		gateway, resolver, scheme string
		want                      string
	}{
		"both":                      {ours, theirs, "https", "example.com/fns/remote:v1.1.0"},
		"another image-resolver":    {ours, other, "https", "tag"},
		"another gateway":           {other, theirs, "https", other + " may not call this port"},
		"a gateway without one":     {"", theirs, "https", "tag"},
		"a gateway with plain http": {ours, theirs, "http", "requires a valid client certificate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is a wait for a deadline
			resolver := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
				frame.Identity = authority.Identity(t, tc.resolver)
				return newTagLister(frame)
			})
			cfg := gateway.Config{
				MaxMessageBytes: 1 << 20, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
				ImageResolver: tc.scheme + "://" + resolver,
			}
			address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
				if tc.gateway != "" {
					frame.Identity = authority.Identity(t, tc.gateway)
				}
				return connected(t, cfg, frame)
			})
			// The gateway tries again until shortly before the deadline. On a busy machine its answer may come too late.
			for timeout, says := 300*time.Millisecond, false; !says; timeout *= 4 {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				err := newCaller(t, address).evaluateWithin(ctx, "example.com/fns/remote", "^1.0")
				cancel()
				says = err != nil && strings.Contains(err.Error(), tc.want)
				if err == nil || (!says && timeout > time.Minute) {
					t.Fatalf("got %v, want %q", err, tc.want)
				}
			}
		})
	}
}

func TestConstraintsAreAnsweredByTheImageResolver(t *testing.T) {
	cfg := gateway.Config{
		MaxMessageBytes: 1 << 20, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
		ImageResolver: "http://" + servetest.Start(t, newTagLister),
	}
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return connected(t, cfg, frame)
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
	if st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), "the repository has no tags") {
		t.Errorf("got %v, want InvalidArgument: the next evaluator would be tried after NotFound", st.Err())
	}
}
