// SPDX-License-Identifier: Apache-2.0

package frontdoor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
)

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
		h, err := New(Config{
			Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{echo{}}, MemoryBudgetWait: time.Minute,
			MaxMessageBytes: 2 * size, MemoryBudgetBytes: 20 * size, Telemetry: telemetry.Discard(),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, service := evaluatorconnect.NewFunctionEvaluatorHandler(h)
		list := append([]byte("kind: ResourceList\nitems: []\n"), bytes.Repeat([]byte("#\n"), size/2)...)
		message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: list})
		if err != nil {
			t.Fatal(err)
		}
		call := func(address string, open <-chan struct{}) int {
			r := newProtoRequest(message)
			r.RemoteAddr = address
			w := closedWindow{httptest.NewRecorder(), open}
			h.Bounded(service).ServeHTTP(w, r)
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
	const list = "kind: ResourceList\nitems: []\n"
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	h, err := New(Config{
		Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{slow{}}, MemoryBudgetWait: time.Minute,
		MaxMessageBytes: 100, MemoryBudgetBytes: 100, MaxLogRate: 10, Telemetry: tel,
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		_, service := evaluatorconnect.NewFunctionEvaluatorHandler(h)
		message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: []byte(list)})
		if err != nil {
			t.Fatal(err)
		}
		open := make(chan struct{})
		for i := range 2 { // of which neither is read until open is closed
			go func() {
				r := newProtoRequest(message)
				r.RemoteAddr = fmt.Sprintf("10.0.0.1:%d", i)
				h.Bounded(service).ServeHTTP(closedWindow{httptest.NewRecorder(), open}, r)
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
		"fn_request_bytes_sum 58", "fn_response_bytes_count 1",
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

// slow evaluates to its input, in a second.
type slow struct{ echo }

func (s slow) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	<-time.After(time.Second)
	return s.echo.Evaluate(ctx, req)
}

// echo evaluates to its input.
type echo struct{}

func (echo) Name() string { return "exec" }

func (echo) Evaluate(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
	return evaluation.Response{ResourceList: req.ResourceList}, nil
}
