// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// startPods runs a gateway with the pod evaluator only, in front of manager, which is
// a service of its own.
func startPods(t *testing.T, manager lease.Manager) string {
	t.Helper()
	cfg := gateway.Config{
		Address: "127.0.0.1:0", MaxMessageBytes: conformance.MaxMessageBytes, DefaultImagePrefix: "example.com/fn",
		DisableRuntimes: []string{gateway.RuntimeExec},
		PodManager:      "http://" + leaseserver.Start(t, manager),
		Pod: gateway.PodConfig{
			MaxRetries: 2, IdleTimeout: time.Minute,
		},
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		return connected(t, cfg, frame)
	})
}

// connected returns a gateway with its connections to other services.
func connected(tb testing.TB, cfg gateway.Config, frame servermain.Frame) (serve.Component, error) {
	tb.Helper()
	services, err := gateway.Connect(cfg, frame)
	if err != nil {
		return serve.Component{}, err
	}
	tb.Cleanup(services.Close)
	return gateway.New(cfg, services, frame)
}

func TestConformanceInPods(t *testing.T) {
	behaviours := map[string]string{}
	for _, b := range conformance.Behaviours() {
		behaviours[image(b)] = b
	}
	dir := t.TempDir()
	pod := testpod.ServeFunctions(t, dir, behaviours)
	manager := leasetest.NewManager(func(
		_ context.Context, open *lease.Open, _ func(*lease.Waiting),
	) (*lease.Granted, error) {
		if behaviours[open.GetImage()] == "" {
			return nil, fault.New(fault.Precondition, "the registry says: no such image")
		}
		return &lease.Granted{Address: pod, Pod: "pod", MaxMessageBytes: conformance.MaxMessageBytes}, nil
	})
	address := startPods(t, manager)
	conformance.Run(t, conformance.Target{
		Serve: func(_ *testing.T, behaviour string) conformance.Function {
			return conformance.Function{Address: address, Image: image(behaviour), Dir: dir}
		},
		NamesFunctions: true,
		UnknownImage:   codes.FailedPrecondition,
		Texts:          conformance.PodTexts("unable to evaluate %[1]s with pod evaluator: "),
	})
	for manager.Active() > 0 {
		manager.AwaitFinish(t)
	}
}

// TestStatusShowsReasonsWithoutTheImage has no pod be there. Porch's text names the image, and the status page shows
// the reason next to it.
func TestStatusShowsReasonsWithoutTheImage(t *testing.T) {
	const reason = "the registry says: no such image"
	address := startPods(t, leasetest.NewManager(
		func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return nil, fault.New(fault.Precondition, reason)
		}))
	err := newCaller(t, address).evaluate(t, "set:v1", "")
	if got := status.Convert(err).Message(); got != "unable to get the grpc client to the pod for set:v1: "+reason {
		t.Errorf("the caller's error is %q", got)
	}
	client := gatewayv1connect.NewStatusServiceClient(servetest.HTTP2Client(t), "http://"+address)
	ended, err := client.ListEvaluations(t.Context(), &gatewayv1.ListEvaluationsRequest{})
	if err != nil || len(ended.GetEvaluations()) != 1 || ended.GetEvaluations()[0].GetReason() != reason {
		t.Errorf("the status shows %v, %v, want the reason %q", ended, err, reason)
	}
}

// TestPoolsAreShownByTheGateway asks the gateway itself for what the pod-manager
// knows.
func TestPoolsAreShownByTheGateway(t *testing.T) {
	manager := leasetest.NewManager(nil)
	manager.SetPools(&podmanagerv1.Pool{Key: &podmanagerv1.PoolKey{Reference: "fn:v1"}})
	address := "http://" + startPods(t, manager)
	client := lease.NewClient(servetest.HTTP2Client(t), address)
	list, err := client.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
	if err != nil || len(list.GetPools()) != 1 {
		t.Errorf("listed %v, %v", list, err)
	}
	_, err = client.Lease(t.Context(), &lease.Open{Image: "fn:v1"}, func(*lease.Waiting) {})
	if fault.Of(err) != fault.Denied {
		t.Errorf("asked for a pod: %v, want class denied", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	rpc := podmanagerv1connect.NewPodManagerServiceClient(servetest.HTTP2Client(t), address, connect.WithGRPC())
	stream, err := rpc.WatchPools(ctx, &podmanagerv1.WatchPoolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for stream.Receive() && stream.Msg().GetSynced() == nil {
		seen++
	}
	if seen != 1 {
		t.Errorf("saw %d pools, want 1", seen)
	}
}

// TestPorchsControllersUseTheGateway calls the gateway as the address in POD_EVALUATOR_ADDRESS: Porch's controllers
// have one connection of grpc-go without TLS, and send image and tag. Later versions send further fields, such as
// exec_path, whose number is not known yet.
func TestPorchsControllersUseTheGateway(t *testing.T) {
	var received []*evaluator.EvaluateFunctionRequest
	pod := testpod.Serve(t, conformance.MaxMessageBytes, func(
		_ context.Context, req *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		received = append(received, req)
		return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
	})
	address := startPods(t, leasetest.NewManager(func(
		_ context.Context, open *lease.Open, _ func(*lease.Waiting),
	) (*lease.Granted, error) {
		if open.GetImage() != "example.com/fn/set-labels:v0.2.0" {
			return nil, fault.New(fault.Precondition, "a pod of %s is asked for", open.GetImage())
		}
		return &lease.Granted{Address: pod, Pod: "pod"}, nil
	}))
	conn := servetest.Dial(t, address,
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(conformance.MaxMessageBytes), grpc.MaxCallSendMsgSize(conformance.MaxMessageBytes)))
	porch := evaluator.NewFunctionEvaluatorClient(conn)
	var later []byte
	for _, number := range []protowire.Number{4, 15, 16, 1000} {
		later = protowire.AppendString(protowire.AppendTag(later, number, protowire.BytesType), "/functions/set-labels")
		later = protowire.AppendVarint(protowire.AppendTag(later, number+1, protowire.VarintType), 7)
	}
	for name, unknown := range map[string][]byte{"main": nil, "later": later} {
		for image, tag := range map[string]string{"set-labels": "v0.2.0", "example.com/fn/set-labels:v0.2.0": ""} {
			received = nil
			req := &evaluator.EvaluateFunctionRequest{Image: image, Tag: tag, ResourceList: []byte(conformance.List)}
			req.ProtoReflect().SetUnknown(unknown)
			resp, err := porch.EvaluateFunction(t.Context(), req)
			if err != nil || string(resp.GetResourceList()) != conformance.List {
				t.Errorf("%s: %s with tag %q: %v, %q", name, image, tag, err, resp.GetResourceList())
			}
			if len(received) != 1 || len(received[0].ProtoReflect().GetUnknown()) > 0 {
				t.Errorf("%s: the pod receives %v, want one request without unknown fields", name, received)
			}
		}
	}
}
