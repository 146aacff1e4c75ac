// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

// testProtocols tests calls with Connect, gRPC-Web and JSON on the port for gRPC. All other tests use the official
// gRPC client.
func testProtocols(t *testing.T, target Target) {
	fn := target.Serve(t, "echo")
	for name, options := range map[string][]connect.ClientOption{
		"Connect":           nil,
		"Connect with JSON": {connect.WithProtoJSON()},
		"gRPC-Web":          {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := connectClient(t, fn, &http.Transport{}, options...).EvaluateFunction(t.Context(), newRequest(fn, List))
			if err != nil {
				t.Fatal(err)
			}
			if string(resp.GetResourceList()) != List {
				t.Errorf("got %q", resp.GetResourceList())
			}
		})
	}
	for name, options := range map[string][]connect.ClientOption{
		"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	} {
		t.Run(name+", compressed", func(t *testing.T) { testCompressed(t, fn, options...) })
	}
	t.Run("JSON by hand", func(t *testing.T) { testPlainJSON(t, fn) })
}

// connectClient returns a client of the library connect-go. Its connections are closed when t ends.
func connectClient(
	t *testing.T, fn Function, transport *http.Transport, options ...connect.ClientOption,
) evaluatorconnect.FunctionEvaluatorClient {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	return evaluatorconnect.NewFunctionEvaluatorClient(&http.Client{Transport: transport},
		"http://"+fn.Address, options...)
}

// testCompressed tests that the server rejects a compressed request and explains the remedy.
func testCompressed(t *testing.T, fn Function, options ...connect.ClientOption) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := connectClient(t, fn, &http.Transport{Protocols: protocols}, append(options, connect.WithSendGzip())...)
	_, err := client.EvaluateFunction(t.Context(), newRequest(fn, List))
	if connect.CodeOf(err) != connect.CodeUnimplemented || !strings.Contains(err.Error(), "without compression") {
		t.Errorf("got %v, want Unimplemented and what to do", err)
	}
}

// testPlainJSON tests an evaluation by plain HTTP with JSON, as users of curl send it.
func testPlainJSON(t *testing.T, fn Function) {
	status, answer := postJSON(t, fn, http.Header{})
	var got struct{ ResourceList []byte }
	if err := json.Unmarshal(answer, &got); err != nil || string(got.ResourceList) != List {
		t.Errorf("status %s, answer %s", status, answer)
	}
}

// testHealth tests health checks in the form that Kubernetes' probes send.
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

// testReflection tests gRPC reflection: it queries the description of the service, as grpcurl does.
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
