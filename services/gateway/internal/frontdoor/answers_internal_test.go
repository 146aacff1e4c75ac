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

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
)

// TestUnreadAnswersLeaveMemory has answers of 60 bytes that are not read, all at once.
func TestUnreadAnswersLeaveMemory(t *testing.T) {
	for name, tc := range greedyClients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &memoryBudget{limit: 1000, timeout: 10 * time.Second}
				for i := range 12 {
					go unread(t, all, tc.from(i), 60)
				}
				<-time.After(10 * answerTimeout)
				if got := all.now(); got != tc.want {
					t.Errorf("%d bytes are reserved, want %d: %s", got, tc.want, tc.reason)
				}
				begin := time.Now()
				for range 2 {
					r := &reservation{budget: all, from: other}
					if err := r.acquire(t.Context(), 100); err != nil {
						t.Error(err)
					}
					r.received(100)
					if err := r.answer(t.Context(), 100); err != nil {
						t.Error(err)
					}
					defer r.release()
				}
				if waited := time.Since(begin); waited > 0 {
					t.Errorf("another client waits for %v", waited)
				}
				<-time.After(time.Hour)
				synctest.Wait()
				if all.now() != 200 || len(all.answers) != 0 || len(all.writing.conns)+len(all.writing.peers) != 2 {
					t.Errorf("afterwards %d bytes are reserved, and %v written, of which two answers of 100", all.now(), all.writing)
				}
			})
		})
	}
}

// unread has a request evaluated whose answer is not read for a minute. If there is no
// memory for it, it is refused in time and with a hint.
func unread(t *testing.T, b *memoryBudget, from source, size int64) {
	r := &reservation{budget: b, from: from}
	defer r.release()
	if err := r.acquire(t.Context(), 1); err != nil {
		t.Error(err)
	}
	r.received(1)
	begin := time.Now()
	err := r.answer(t.Context(), size)
	if waited := time.Since(begin); err != nil && waited != answerTimeout || waited > answerTimeout {
		t.Errorf("an answer waits for %v, want %v", waited, answerTimeout)
	}
	if _, hint := fault.RetryAfter(err); err != nil && (fault.Of(err) != fault.Exhausted || !hint) {
		t.Errorf("%v of class %v, hint %v", err, fault.Of(err), hint)
	}
	if err == nil {
		<-time.After(time.Minute)
	}
}

// TestAClientThatReadsGetsAllAnswers has one connection with many more answers than may be
// written at a time, and with large ones among them, while it sends all the time.
func TestAClientThatReadsGetsAllAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := peers(1)[0]
		all := &memoryBudget{limit: 1000, timeout: 10 * time.Second}
		for i := range 200 {
			size := int64(100)
			if i%20 == 0 {
				size = 400
			}
			go func() {
				r := &reservation{budget: all, from: from}
				defer r.release()
				if err := r.acquire(t.Context(), 50); err != nil {
					t.Error(err)
				}
				<-time.After(10 * time.Millisecond)
				r.received(50)
				if err := r.answer(t.Context(), size); err != nil {
					t.Errorf("answer %d: %v", i, err)
				}
				<-time.After(20 * time.Millisecond)
			}()
			<-time.After(12 * time.Millisecond)
		}
		<-time.After(time.Minute)
		if got := all.now(); got != 0 {
			t.Errorf("%d bytes are reserved afterwards", got)
		}
	})
}

// TestACallerThatLeavesWaitsForNoAnswer has a caller leave whose answer waits.
func TestACallerThatLeavesWaitsForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, from := &memoryBudget{limit: 100}, peers(1)[0]
		first, second := &reservation{budget: all, from: from}, &reservation{budget: all, from: from}
		if err := first.answer(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(answerTimeout/2, cancel)
		if err := second.answer(ctx, 50); fault.Of(err) != fault.Canceled {
			t.Errorf("%v of class %v, want Canceled", err, fault.Of(err))
		}
		second.release()
		first.release()
	})
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
// a budget that has place for ten of their requests and answers.
func TestUnreadAnswersDoNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10_000
		h, err := New(Config{
			Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{echo{}}, MaxInHandWait: time.Minute,
			MaxMessageBytes: 2 * size, MaxInHandBytes: 20 * size, Telemetry: telemetry.Discard(),
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
			r := httptest.NewRequest(http.MethodPost, evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure, bytes.NewReader(message))
			r.RemoteAddr = address
			r.Header.Set("Content-Type", "application/proto")
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
		<-time.After(answerTimeout)
		for range 20 {
			begin := time.Now()
			if code := call("10.0.0.2:1", opened); code != http.StatusOK || time.Since(begin) > 0 {
				t.Errorf("another caller gets status %d after %v", code, time.Since(begin))
			}
		}
		close(open)
		synctest.Wait()
		if got := h.budget.now(); got != 0 {
			t.Errorf("%d bytes are reserved afterwards", got)
		}
	})
}

// TestDroppedAnswersAreCounted has a function succeed whose caller gets an error instead of
// the answer: metrics and log have what the caller got.
func TestDroppedAnswersAreCounted(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	h, err := New(Config{
		Names: naming.Resolver{DefaultPrefix: "example.com"}, Chain: evaluation.Chain{echo{}},
		MaxMessageBytes: 100, MaxInHandBytes: 100, Telemetry: tel,
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		unread, r := &reservation{budget: &h.budget, from: peers(1)[0]}, &reservation{budget: &h.budget, from: peers(1)[0]}
		if err := unread.answer(t.Context(), 90); err != nil {
			t.Fatal(err)
		}
		req := &evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: []byte("kind: ResourceList\nitems: []\n")}
		if _, err := h.EvaluateFunction(context.WithValue(t.Context(), reservationKey{}, r), req); fault.Of(err) != fault.Exhausted {
			t.Errorf("%v of class %v, want Exhausted", err, fault.Of(err))
		}
	})
	metrics := scrape()
	for _, want := range []string{
		`fn_evaluations_total{code="exhausted",executor="exec",image="fn:v1",severity="none"} 1`,
		`fn_request_bytes_sum 29`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	for _, wrong := range []string{`code="ok"`, "fn_rejections_total{", "fn_response_bytes_count 1"} {
		if strings.Contains(metrics, wrong) {
			t.Errorf("metrics have %s: the function ran, and its answer was not sent", wrong)
		}
	}
	if line := log.Line("evaluation failed"); !strings.Contains(line, "class=exhausted") || log.Line("msg=evaluated") != "" {
		t.Errorf("the log has %q of it", line)
	}
}

// echo evaluates to its input.
type echo struct{}

func (echo) Name() string { return "exec" }

func (echo) Evaluate(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
	return evaluation.Response{ResourceList: req.ResourceList}, nil
}
