// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

// evaluate is a service that looks at requests.
type evaluate func(*evaluator.EvaluateFunctionRequest)

func (e evaluate) EvaluateFunction(
	_ context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	e(req)
	return &evaluator.EvaluateFunctionResponse{}, nil
}

// newRequest returns a request from an address. Its length is unknown if it is negative.
func newRequest(from, contentType string, body io.Reader, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure, body)
	r.RemoteAddr = from
	r.ContentLength = length
	r.ProtoMajor = 2
	r.Header.Set("Content-Type", contentType)
	return r
}

// TestMemoryIsReservedBeforeARequestIsRead has only the announced length of a request arrive: a request of another
// client that does not fit in addition waits.
func TestMemoryIsReservedBeforeARequestIsRead(t *testing.T) {
	for name, first := range map[string]struct {
		contentType, body string
		length, want      int64
	}{
		"gRPC":           {"application/grpc", "\x00\x00\x00\x00\x50", -1, 80},
		"gRPC JSON":      {"application/grpc+json", "\x00\x00\x00\x00\x50", -1, 80},
		"gRPC-Web":       {"application/grpc-web+proto", "\x00\x00\x00\x00\x50", 85, 80},
		"Connect":        {"application/json", "", 80, 80},
		"unknown length": {"application/json", "", -1, 100},
		"too large":      {"application/grpc", "\x00\xff\xff\xff\xff", -1, 100}, // the surplus is not stored
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestBudget(100)
				_, handler := NewHandler(Config{Service: evaluate(nil), Budget: b, MaxMessageBytes: 100})
				never, closed := io.Pipe()
				go handler.ServeHTTP(httptest.NewRecorder(),
					newRequest("a:1", first.contentType, io.MultiReader(strings.NewReader(first.body), never), first.length))
				synctest.Wait()
				if got := b.Reserved(); got != first.want {
					t.Errorf("%d bytes are reserved, want %d", got, first.want)
				}
				go handler.ServeHTTP(httptest.NewRecorder(),
					newRequest("b:1", "application/grpc", io.MultiReader(strings.NewReader("\x00\x00\x00\x00\x1e"), never), -1))
				synctest.Wait()
				if b.Queued() != 1 {
					t.Error("the other request does not wait")
				}
				_ = closed.Close()
				synctest.Wait()
				checkEmpty(t, b)
			})
		})
	}
}

// TestUnknownFieldsAreCounted has a request that contains only a field of a later version.
func TestUnknownFieldsAreCounted(t *testing.T) {
	message := protowire.AppendTag(nil, 15, protowire.BytesType)
	message = protowire.AppendBytes(message, make([]byte, 5000))
	for _, length := range []int64{int64(len(message)), -1} {
		b, evaluated := newTestBudget(10_000), false
		_, handler := NewHandler(Config{Budget: b, MaxMessageBytes: 10_000, Service: evaluate(
			func(*evaluator.EvaluateFunctionRequest) {
				evaluated = true
				if got := b.Reserved(); got != int64(len(message)) {
					t.Errorf("%d bytes are reserved during the evaluation, want %d", got, len(message))
				}
			})})
		handler.ServeHTTP(httptest.NewRecorder(), newRequest("a:1", "application/proto", bytes.NewReader(message), length))
		if !evaluated {
			t.Error("the request was not evaluated")
		}
		checkEmpty(t, b)
	}
}

// TestSlowRequestsAreReported has requests whose clients send too slowly, as rpcserve reports it.
func TestSlowRequestsAreReported(t *testing.T) {
	for contentType, sent := range map[string]string{
		"application/grpc": "", "application/grpc+proto": "\x00\x00\x00\x00\x50", "application/json": "{",
	} {
		var rejected error
		_, handler := NewHandler(Config{
			Service: evaluate(nil), Budget: newTestBudget(100), MaxMessageBytes: 100,
			Rejected: func(_ context.Context, err error) { rejected = err },
		})
		slow := iotest.ErrReader(connect.NewError(connect.CodeDeadlineExceeded, errors.New("given up")))
		r := newRequest("a:1", contentType, io.MultiReader(strings.NewReader(sent), slow), -1)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if fault.Of(rejected) != fault.DeadlineExceeded {
			t.Errorf("%s: %v is reported, want rpcserve's error", contentType, rejected)
		}
	}
}
