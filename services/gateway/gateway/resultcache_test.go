// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// digestOf is an image-resolver that knows the digest of every image.
type digestOf struct {
	imageresolverv1connect.UnimplementedImageResolverServiceHandler
	digest string
}

func (d digestOf) ResolveImage(
	context.Context, *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return &imageresolverv1.ResolveImageResponse{Digest: d.digest}, nil
}

// serve serves the image-resolver.
func (d digestOf) serve(tb testing.TB) (url string) {
	return "http://" + servetest.Start(tb, func(frame servermain.Frame) (serve.Component, error) {
		cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: imageresolverv1connect.ImageResolverServiceName, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20,
			Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
				return imageresolverv1connect.NewImageResolverServiceHandler(d, options...)
			},
		})
		return serve.Component{Endpoints: []serve.Endpoint{{Name: "image-resolver", Handler: handler}}}, nil
	})
}

// startRemembering runs a gateway with a result cache for the images of example.com/fn, in front of a pod that
// returns its input. It returns the count of the pod's evaluations.
func startRemembering(tb testing.TB, maxBytes int) (address string, calls *atomic.Int64) {
	tb.Helper()
	return startRememberingAs(tb, maxBytes, gateway.ResultCacheConfig{MaxBytes: 32 << 20})
}

// startRememberingAs does so with settings of the cache.
func startRememberingAs(
	tb testing.TB, maxBytes int, remember gateway.ResultCacheConfig,
) (address string, calls *atomic.Int64) {
	tb.Helper()
	const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	calls = new(atomic.Int64)
	pod := testpod.Serve(tb, maxBytes, func(
		_ context.Context, req *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		calls.Add(1)
		return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList(), Log: []byte("done")}, nil
	})
	manager := leasetest.NewManager(func(
		context.Context, *lease.Open, func(*lease.Waiting),
	) (*lease.Granted, error) {
		return &lease.Granted{Address: pod, Pod: "pod", Digest: digest, MaxMessageBytes: int64(maxBytes)}, nil
	})
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: config.Bytes(maxBytes), DefaultImagePrefix: "example.com/fn",
		DisableRuntimes: []string{gateway.RuntimeExec},
		PodManager:      "http://" + leaseserver.Start(tb, manager),
		ImageResolver:   digestOf{digest: digest}.serve(tb),
		Pod: gateway.PodConfig{
			MaxRetries: 2, IdleTimeout: time.Minute,
		},
		ResultCache: remember,
	}
	cfg.ResultCache.Images = []string{"example.com/fn/*"}
	if err := cfg.Validate(); err != nil {
		tb.Fatal(err)
	}
	address = servetest.Start(tb, func(frame servermain.Frame) (serve.Component, error) {
		return connected(tb, cfg, frame)
	})
	return address, calls
}

// TestResultsAreRemembered evaluates twice by one tag, once by another, and once an image without a cache.
func TestResultsAreRemembered(t *testing.T) {
	address, calls := startRemembering(t, 1<<20)
	client := newCaller(t, address).client
	for i, step := range []struct{ image, header string }{
		{"example.com/fn/set:v1", "miss"},
		{"example.com/fn/set:v1", "hit"},
		{"set:v2", "hit"},
		{"example.com/other:v1", ""},
	} {
		var header metadata.MD
		list := []byte(resourceList(3))
		resp, err := client.EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: step.image, ResourceList: list}, grpc.Header(&header))
		if err != nil {
			t.Fatal(err)
		}
		if string(resp.GetResourceList()) != string(list) || string(resp.GetLog()) != "done" {
			t.Errorf("step %d: output %q, log %q", i, resp.GetResourceList(), resp.GetLog())
		}
		if got := strings.Join(header.Get("fn-cache"), " "); got != step.header {
			t.Errorf("step %d: header %q, want %q", i, got, step.header)
		}
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d evaluations in the pod, want 2", n)
	}
}

// TestInvalidListsAreRejectedBesideACache has lists that are not valid, of images with and without a cache.
func TestInvalidListsAreRejectedBesideACache(t *testing.T) {
	address, calls := startRemembering(t, 1<<20)
	for _, image := range []string{"example.com/fn/set:v1", "example.com/other:v1"} {
		_, err := newCaller(t, address).client.EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte("kind: [")})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", image, err)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d evaluations in the pod", n)
	}
}

// BenchmarkResultCacheHit is an evaluation of 200 resources that a gateway remembers.
func BenchmarkResultCacheHit(b *testing.B) {
	address, calls := startRemembering(b, 6<<20)
	benchmarkHit(b, address, calls)
}

// benchmarkHit evaluates 200 resources again and again, of which the pod may evaluate the first only.
func benchmarkHit(b *testing.B, address string, calls *atomic.Int64) {
	b.Helper()
	client := newCaller(b, address).client
	req := &evaluator.EvaluateFunctionRequest{Image: "example.com/fn/set:v1", ResourceList: []byte(resourceList(200))}
	b.SetBytes(int64(len(req.GetResourceList())))
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := client.EvaluateFunction(b.Context(), req); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	if calls.Load() != 1 {
		b.Fatalf("%d evaluations in the pod, want 1", calls.Load())
	}
	reportQuantiles(b, took)
}

// resourceList returns a list of n Deployments.
func resourceList(n int) string {
	var list strings.Builder
	list.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for i := range n {
		fmt.Fprintf(&list, `- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-%[1]d
    namespace: default
    annotations:
      config.kubernetes.io/index: '0'
      config.kubernetes.io/path: 'deployment-%[1]d.yaml'
      internal.config.kubernetes.io/index: '0'
      internal.config.kubernetes.io/path: 'deployment-%[1]d.yaml'
  spec:
    replicas: 3 # as many as there are zones
    template:
      spec:
        containers:
        - name: web
          image: example.com/web:v1.2.3
`, i)
	}
	return list.String()
}
