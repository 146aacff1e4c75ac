// SPDX-License-Identifier: Apache-2.0

package rpcserve_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

const (
	healthPath     = "/" + grpchealth.HealthV1ServiceName + "/Check"
	reflectionPath = "/" + grpcreflect.ReflectV1ServiceName + "/ServerReflectionInfo"
	evaluatePath   = evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure
)

func TestAServiceWithoutLimitsIsNotServed(t *testing.T) {
	for name, tc := range map[string]struct {
		request, response int
		ok                bool
	}{
		"both":                {1, 1, true},
		"none":                {0, 0, false},
		"of requests":         {1, 0, false},
		"of responses":        {0, 1, false},
		"negative, so no one": {-1, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := rpcserve.Config{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
			defer func() {
				p := recover()
				text, _ := p.(string)
				if (p == nil) != tc.ok || (p != nil && !strings.Contains(text, evaluatorconnect.FunctionEvaluatorName)) {
					t.Errorf("NewHandler panics with %v, want a panic that names the service: %v", p, !tc.ok)
				}
			}()
			rpcserve.NewHandler(cfg, rpcserve.Service{
				Name: evaluatorconnect.FunctionEvaluatorName, MaxRequestBytes: tc.request, MaxResponseBytes: tc.response,
				Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
					return evaluatorconnect.NewFunctionEvaluatorHandler(moody{}, options...)
				},
			})
		})
	}
}

// serveHTTP2 serves moody over HTTP/2.
func serveHTTP2(t *testing.T) (address string, client *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(newMoody(1 << 20))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, servetest.HTTP2Client(t)
}

// envelope returns a message as gRPC sends it.
func envelope(flags byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message))), message...)
}

// send posts a body, and returns the code and message of the answer.
func send(t *testing.T, client *http.Client, url string, header map[string]string, body []byte) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range header {
		req.Header.Set(key, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		answer = append(answer, " "+h.Get("Grpc-Status")+" "+h.Get("Grpc-Message")...)
	}
	return string(answer)
}

func TestEachHandlerHasALimit(t *testing.T) {
	address, client := serveHTTP2(t)
	for name, tc := range map[string]struct {
		path  string
		limit int
	}{
		"health": {healthPath, 4 << 10}, "reflection": {reflectionPath, 64 << 10}, "evaluator": {evaluatePath, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			grpc := map[string]string{"Content-Type": "application/grpc"}
			large := envelope(0, append([]byte{15<<3 | 2}, make([]byte, tc.limit)...))
			if got := send(t, client, address+tc.path, grpc, large); !strings.Contains(got, "larger than configured max") {
				t.Errorf("a message of %d bytes is answered with %.200q", tc.limit+1, got)
			}
		})
	}
}

// gzipped returns mebibytes of zeros, compressed.
func gzipped(t *testing.T, mebibytes int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for range mebibytes {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCompressedMessagesAreNotInflated sends one to each handler with each protocol: with a
// header that announces it, and without.
func TestCompressedMessagesAreNotInflated(t *testing.T) {
	address, client := serveHTTP2(t)
	small := gzipped(t, 1) // about 1 KiB, within all limits
	const said = "without compression"
	for path, unary := range map[string]bool{healthPath: true, reflectionPath: false, evaluatePath: true} {
		connectType, connectHeader, connectBody := "application/proto", "Content-Encoding", small
		if !unary {
			connectType, connectHeader, connectBody = "application/connect+proto", "Connect-Content-Encoding", envelope(1, small)
		}
		for name, tc := range map[string]struct {
			header map[string]string
			body   []byte
			want   string
		}{
			"gRPC": {
				map[string]string{"Content-Type": "application/grpc", "Grpc-Encoding": "gzip"}, envelope(1, small), said,
			},
			"gRPC, by flag": {
				map[string]string{"Content-Type": "application/grpc"}, envelope(1, small), "without compression support",
			},
			"gRPC-Web": {
				map[string]string{"Content-Type": "application/grpc-web+proto", "Grpc-Encoding": "gzip"},
				envelope(1, small),
				said,
			},
			"gRPC-Web by flag": {
				map[string]string{"Content-Type": "application/grpc-web+proto"},
				envelope(1, small),
				"without compression support",
			},
			"Connect": {map[string]string{"Content-Type": connectType, connectHeader: "gzip"}, connectBody, said},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				if got := send(t, client, address+path, tc.header, tc.body); !strings.Contains(got, tc.want) {
					t.Errorf("answered %.300q, want %q", got, tc.want)
				}
			})
		}
	}
}

// TestClientsHearThatTheyMustNotCompress has the clients that users use.
func TestClientsHearThatTheyMustNotCompress(t *testing.T) {
	address, client := serveHTTP2(t)
	req := &evaluator.EvaluateFunctionRequest{ResourceList: make([]byte, 100<<10)}
	for name, options := range map[string][]connect.ClientOption{
		"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	} {
		options = append(options, connect.WithSendGzip())
		_, err := evaluatorconnect.NewFunctionEvaluatorClient(client, address, options...).EvaluateFunction(t.Context(), req)
		if connect.CodeOf(err) != connect.CodeUnimplemented || !strings.Contains(err.Error(), "without compression") {
			t.Errorf("%s: %v, want Unimplemented and what to do", name, err)
		}
	}
	caller := evaluator.NewFunctionEvaluatorClient(dialGRPC(t, address))
	_, err := caller.EvaluateFunction(t.Context(), req, grpc.UseCompressor(grpcgzip.Name))
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "without compression") {
		t.Errorf("grpc-go: %v, want Unimplemented and what to do", err)
	}
	if resp, err := caller.EvaluateFunction(t.Context(), req); err != nil || len(resp.GetResourceList()) != 100<<10 {
		t.Errorf("grpc-go, uncompressed: %v", err)
	}
}

func dialGRPC(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	plaintext := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(strings.TrimPrefix(address, "http://"), plaintext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// openReflection opens a stream, and returns the error of its first answer.
func openReflection(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	list := &grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}
	_ = stream.Send(list) // what is wrong comes with the answer
	_, err = stream.Recv()
	return err
}

func TestReflectionStreamsAreFew(t *testing.T) {
	address, _ := serveHTTP2(t)
	conn := dialGRPC(t, address)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range 16 {
		if err := openReflection(ctx, conn); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	if err := openReflection(ctx, conn); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one stream more: %v, want ResourceExhausted", err)
	}
	leave()
	await.Equal(t, "a stream after the others ended", func() error { return openReflection(t.Context(), conn) }, nil)
}
