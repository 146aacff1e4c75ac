// SPDX-License-Identifier: Apache-2.0

package frontdoor

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
)

// large evaluates to an output of 60 bytes.
type large struct{}

func (large) Name() string { return "exec" }

func (large) Evaluate(context.Context, evaluation.Request) (evaluation.Response, error) {
	return evaluation.Response{ResourceList: make([]byte, 50), Log: make([]byte, 10)}, nil
}

func TestOutputsAreReserved(t *testing.T) {
	const list = "kind: ResourceList\nitems: []\n"
	h, err := New(Config{
		Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{large{}},
		MaxMessageBytes: 100, MemoryBudgetBytes: 100, Telemetry: telemetry.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(list))
	h.Bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		req := &evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: []byte(list)}
		if _, err := h.EvaluateFunction(r.Context(), req); err != nil {
			t.Error(err)
		}
		if got, want := h.budget.Reserved(), int64(60); got != want {
			t.Errorf("%d bytes are reserved while the response is written, want %d", got, want)
		}
		other := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 50)))
		other.RemoteAddr = "10.0.0.9:1"
		h.Bounded(http.HandlerFunc(func(_ http.ResponseWriter, other *http.Request) {
			if _, err := io.ReadAll(other.Body); connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("another request is admitted: %v", err)
			}
		})).ServeHTTP(httptest.NewRecorder(), other)
	})).ServeHTTP(httptest.NewRecorder(), r)
	if got := h.budget.Reserved(); got != 0 {
		t.Errorf("%d bytes are reserved afterwards", got)
	}
}

// TestUnknownFieldsAreCounted has a request that is nothing but a field of a later version.
func TestUnknownFieldsAreCounted(t *testing.T) {
	message := protowire.AppendTag(nil, 15, protowire.BytesType)
	message = protowire.AppendBytes(message, make([]byte, 5000))
	h, err := New(Config{MaxMessageBytes: 10000, MemoryBudgetBytes: 10000, Telemetry: telemetry.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	evaluated := false
	_, service := evaluatorconnect.NewFunctionEvaluatorHandler(evaluate(func(*evaluator.EvaluateFunctionRequest) {
		evaluated = true
		if got := h.budget.Reserved(); got < int64(len(message)) {
			t.Errorf("%d bytes are reserved during the evaluation, want %d", got, len(message))
		}
	}))
	for _, length := range []int64{int64(len(message)), -1} {
		r := newProtoRequest(message)
		r.ContentLength = length
		h.Bounded(service).ServeHTTP(httptest.NewRecorder(), r)
		if !evaluated {
			t.Error("the request was not evaluated")
		}
		evaluated = false
	}
}

// newProtoRequest returns a request by the Connect protocol, for the service's handler.
func newProtoRequest(message []byte) *http.Request {
	const procedure = evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure
	r := httptest.NewRequest(http.MethodPost, procedure, bytes.NewReader(message))
	r.Header.Set("Content-Type", "application/proto")
	return r
}

// evaluate is an evaluator that looks at requests.
type evaluate func(*evaluator.EvaluateFunctionRequest)

func (e evaluate) EvaluateFunction(
	_ context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	e(req)
	return &evaluator.EvaluateFunctionResponse{}, nil
}

// TestMemoryIsReservedBeforeARequestIsRead has a request of which nothing but its length has
// come: another one that does not fit beside it is rejected before it is read.
func TestMemoryIsReservedBeforeARequestIsRead(t *testing.T) {
	h, err := New(Config{MaxMessageBytes: 100, MemoryBudgetBytes: 100, Telemetry: telemetry.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	send := func(contentType, body string, length int64, next http.HandlerFunc) {
		t.Helper()
		never, _ := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(body), never))
		r.ContentLength = length
		r.Header.Set("Content-Type", contentType)
		h.Bounded(next).ServeHTTP(httptest.NewRecorder(), r)
	}
	for name, first := range map[string]struct {
		contentType, body string
		length, want      int64
	}{
		"gRPC":            {"application/grpc", "\x00\x00\x00\x00\x50", -1, 80},
		"gRPC-Web":        {"application/grpc-web+proto", "\x00\x00\x00\x00\x50", 85, 80},
		"Connect":         {"application/json", "", 80, 80},
		"of no length":    {"application/json", "", -1, 100},                     // it may become as large as any
		"past the limits": {"application/grpc", "\x00\xff\xff\xff\xff", -1, 100}, // what is too large is not kept
	} {
		t.Run(name, func(t *testing.T) {
			send(first.contentType, first.body, first.length, func(_ http.ResponseWriter, r *http.Request) {
				if got := h.budget.Reserved(); got != first.want {
					t.Errorf("%d bytes are reserved, want %d", got, first.want)
				}
				if prefix := make([]byte, len(first.body)); len(prefix) > 0 {
					if _, err := io.ReadFull(r.Body, prefix); err != nil || string(prefix) != first.body {
						t.Errorf("the handler reads %q, %v, want %q", prefix, err, first.body)
					}
				}
				send("application/grpc", "\x00\x00\x00\x00\x1e", -1, func(_ http.ResponseWriter, r *http.Request) {
					if _, err := r.Body.Read(make([]byte, 1)); connect.CodeOf(err) != connect.CodeResourceExhausted {
						t.Errorf("the other request is read: %v, want ResourceExhausted", err)
					}
				})
			})
			if got := h.budget.Reserved(); got != 0 {
				t.Errorf("%d bytes are reserved afterwards", got)
			}
		})
	}
}
