// SPDX-License-Identifier: Apache-2.0

package evalhandler

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
)

// newProtoRequest returns a request by the Connect protocol, for the service's handler.
func newProtoRequest(message []byte) *http.Request {
	const procedure = evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure
	r := httptest.NewRequest(http.MethodPost, procedure, bytes.NewReader(message))
	r.Header.Set("Content-Type", "application/proto")
	return r
}

// closedWindow is a response to a client that does not read.
type closedWindow struct {
	*httptest.ResponseRecorder
	open <-chan struct{}
}

func (w closedWindow) Write(p []byte) (int, error) {
	<-w.open
	return w.ResponseRecorder.Write(p)
}

// TestUnreadAnswersDoNotStopOthers has 22 callers of one address who read no answers, with
// a budget that ten of their requests and answers fill.
func TestUnreadAnswersDoNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10_000
		h := New(Config{
			Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{echo{}},
			MaxMessageBytes: 2 * size, MemoryBudgetBytes: 20 * size, Telemetry: telemetry.Discard(), History: evalhistory.New(),
		})
		_, service := h.Serve()
		list := append([]byte("kind: ResourceList\nitems: []\n"), bytes.Repeat([]byte("#\n"), size/2)...)
		message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: list})
		if err != nil {
			t.Fatal(err)
		}
		call := func(address string, open <-chan struct{}) int {
			r := newProtoRequest(message)
			r.RemoteAddr = address
			w := closedWindow{httptest.NewRecorder(), open}
			service.ServeHTTP(w, r)
			return w.Code
		}
		open, opened := make(chan struct{}), make(chan struct{})
		close(opened)
		for i := range 22 {
			go call(fmt.Sprintf("10.0.0.1:%d", i), open)
		}
		synctest.Wait()
		<-time.After(2 * time.Second)
		for range 20 {
			begin := time.Now()
			if code := call("10.0.0.2:1", opened); code != http.StatusOK || time.Since(begin) > 0 {
				t.Errorf("another caller gets status %d after %v", code, time.Since(begin))
			}
		}
		close(open)
		synctest.Wait()
		if got := h.budget.Reserved(); got != 0 {
			t.Errorf("%d bytes are reserved afterwards", got)
		}
	})
}

// TestDroppedAnswersAreCounted has a function succeed whose caller gets an error instead of
// the answer: metrics and log have what the caller got.
func TestDroppedAnswersAreCounted(t *testing.T) {
	const list = "kind: ResourceList\n"
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	h := New(Config{
		Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{slow{}},
		MaxMessageBytes: 100, MemoryBudgetBytes: 100, MaxLogRate: 10, Telemetry: tel, History: evalhistory.New(),
	})
	synctest.Test(t, func(t *testing.T) {
		_, service := h.Serve()
		message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: []byte(list)})
		if err != nil {
			t.Fatal(err)
		}
		open := make(chan struct{})
		for i := range 2 { // of which neither is read until open is closed
			go func() {
				r := newProtoRequest(message)
				r.RemoteAddr = fmt.Sprintf("10.0.0.1:%d", i)
				service.ServeHTTP(closedWindow{httptest.NewRecorder(), open}, r)
			}()
		}
		<-time.After(time.Minute)
		close(open)
		synctest.Wait()
	})
	metrics := scrape()
	for _, want := range []string{
		`fn_evaluations_total{code="exhausted",executor="exec",image="fn:v1",severity="none"} 1`,
		`fn_evaluations_total{code="ok",executor="exec",image="fn:v1",severity="none"} 1`,
		"fn_request_bytes_sum 38", "fn_response_bytes_count 1",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	if strings.Contains(metrics, "fn_rejections_total{") {
		t.Error("metrics have a rejection: the function has run")
	}
	if line := log.Line("evaluation failed"); !strings.Contains(line, "code=exhausted") {
		t.Errorf("the log has %q of it", line)
	}
}

// large evaluates to an output of 60 bytes.
type large struct{ echo }

func (large) Evaluate(context.Context, evaluation.Request) (evaluation.Response, error) {
	return evaluation.Response{ResourceList: make([]byte, 50), Log: make([]byte, 10)}, nil
}

// slow evaluates to an output of 50 bytes, in a second.
type slow struct{ echo }

func (slow) Evaluate(context.Context, evaluation.Request) (evaluation.Response, error) {
	<-time.After(time.Second)
	return evaluation.Response{ResourceList: make([]byte, 50)}, nil
}

// echo evaluates to its input.
type echo struct{}

func (echo) Name() string { return "exec" }

func (echo) Evaluate(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
	return evaluation.Response{ResourceList: req.ResourceList}, nil
}

// TestOutputsAreReserved has an answer be written that is larger than its request.
func TestOutputsAreReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{
			Names: nameresolver.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{large{}},
			MaxMessageBytes: 100, MemoryBudgetBytes: 100, Telemetry: telemetry.Discard(), History: evalhistory.New(),
		})
		_, service := h.Serve()
		list := []byte("kind: ResourceList")
		message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: list})
		if err != nil {
			t.Fatal(err)
		}
		open := make(chan struct{})
		go service.ServeHTTP(closedWindow{httptest.NewRecorder(), open}, newProtoRequest(message))
		synctest.Wait()
		if got, want := h.budget.Reserved(), int64(60); got != want {
			t.Errorf("%d bytes are reserved while the response is written, want %d", got, want)
		}
		close(open)
		synctest.Wait()
		if got := h.budget.Reserved(); got != 0 {
			t.Errorf("%d bytes are reserved afterwards", got)
		}
	})
}

// hanging counts evaluations, which end when it is closed.
type hanging struct {
	echo
	running *atomic.Int64
	closed  <-chan struct{}
}

func (h hanging) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	h.running.Add(1)
	<-h.closed
	return h.echo.Evaluate(ctx, req)
}

// TestRequestsWaitForTheirFunctionsShare has three requests of 250 bytes for one function in a budget of 1000 bytes.
func TestRequestsWaitForTheirFunctionsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		closed := make(chan struct{})
		h := New(Config{
			Names:           nameresolver.Resolver{DefaultPrefix: "example.com"},
			Chain:           evaluation.Chain{hanging{running: &running, closed: closed}},
			MaxMessageBytes: 1000, MemoryBudgetBytes: 1000, Telemetry: telemetry.Discard(), History: evalhistory.New(),
		})
		_, service := h.Serve()
		list := append([]byte("kind: ResourceList\n"), bytes.Repeat([]byte("#\n"), 110)...)
		message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: list})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			go service.ServeHTTP(httptest.NewRecorder(), newProtoRequest(message))
		}
		synctest.Wait()
		if running.Load() != 2 || h.budget.Queued() != 1 {
			t.Errorf("%d evaluations run and %d requests wait, want 2 and 1", running.Load(), h.budget.Queued())
		}
		close(closed)
		synctest.Wait()
		if running.Load() != 3 {
			t.Errorf("%d evaluations ran, want 3", running.Load())
		}
	})
}
