// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

// testProtocols tests calls with Connect, gRPC-Web and JSON on the gRPC port. All other tests use the official gRPC
// client.
func testProtocols(t *testing.T, target Target) {
	fn := target.Serve(t, "echo")
	for name, options := range map[string][]connect.ClientOption{
		"Connect":           nil,
		"Connect with JSON": {connect.WithProtoJSON()},
		"gRPC-Web":          {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := evaluatorconnect.NewFunctionEvaluatorClient(&http.Client{Transport: transport}, "http://"+fn.Address,
				options...)
			resp, err := client.EvaluateFunction(t.Context(), newRequest(fn, List))
			if err != nil {
				t.Fatal(err)
			}
			if string(resp.GetResourceList()) != List {
				t.Errorf("got %q", resp.GetResourceList())
			}
		})
	}
	t.Run("JSON by hand", func(t *testing.T) { testPlainJSON(t, fn) })
}

// testPlainJSON tests an evaluation with a plain HTTP request in JSON, as users of curl send it.
func testPlainJSON(t *testing.T, fn Function) {
	status, answer := postJSON(t, fn, http.Header{})
	var got struct{ ResourceList []byte }
	if err := json.Unmarshal(answer, &got); err != nil || string(got.ResourceList) != List {
		t.Errorf("status %s, answer %s", status, answer)
	}
}

// testHealth tests health checks that look like the probes of Kubernetes.
func testHealth(t *testing.T, target Target) {
	conn := dialServer(t, target.Serve(t, "echo").Address)
	for _, service := range []string{"", evaluatorconnect.FunctionEvaluatorName} {
		resp, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(),
			&grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q is %v, %v", service, resp.GetStatus(), err)
		}
	}
	testReflection(t, conn)
}

// testReflection queries the description of the service with gRPC reflection, as grpcurl does.
func testReflection(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: evaluatorconnect.FunctionEvaluatorName,
		},
	}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil || resp.GetFileDescriptorResponse() == nil {
		t.Errorf("reflection answers %v, %v", resp, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}
