// SPDX-License-Identifier: Apache-2.0

package frontdoor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
)

// peers returns sources that share nothing.
func peers(n int) []source {
	sources := make([]source, n)
	for i := range sources {
		sources[i] = source{conn: fmt.Sprintf("10.0.0.%d:5000", i), peer: fmt.Sprintf("10.0.0.%d", i)}
	}
	return sources
}

// length returns how many requests are queued.
func length(b *memoryBudget) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

func TestReservationsGrow(t *testing.T) {
	tests := map[string]struct {
		reason      string
		others      int64
		held, grow  int64
		refused     bool
		want, after int64 // reserved while the request is there, and after it
	}{
		"fits":          {"", 40, 0, 60, false, 100, 40},
		"does not fit":  {"reservations stay within the budget", 40, 0, 61, true, 40, 40},
		"grown":         {"what is reserved already is not counted twice", 40, 50, 60, false, 100, 40},
		"grown too far": {"it keeps what it had until it ends", 40, 50, 61, true, 90, 40},
		"shrunk":        {"a reservation is never smaller than before", 40, 50, 10, false, 90, 40},
		"alone":         {"the only request is never refused: it would be for ever", 0, 0, 1000, false, 1000, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := peers(2)
			all := &memoryBudget{limit: 100}
			others, r := &reservation{budget: all, from: from[0]}, &reservation{budget: all, from: from[1]}
			if err := others.grow(tc.others); err != nil {
				t.Fatal(err)
			}
			if err := r.grow(tc.held); err != nil {
				t.Fatal(err)
			}
			err := r.grow(tc.grow)
			if _, hint := fault.RetryAfter(err); (err != nil) != tc.refused || tc.refused && (fault.Of(err) != fault.Exhausted || !hint) {
				t.Errorf("grow = %v, want refused %v with a hint: %s", err, tc.refused, tc.reason)
			}
			if got := all.now(); got != tc.want {
				t.Errorf("%d bytes are reserved, want %d: %s", got, tc.want, tc.reason)
			}
			r.release()
			r.release()
			if got := all.now(); got != tc.after {
				t.Errorf("%d bytes are reserved afterwards, want %d", got, tc.after)
			}
		})
	}
}

// request is one that comes in TestRequestsAreQueued, a second after the one before.
type request struct {
	from  source
	size  int64
	want  fault.Class   // -1 if it is admitted
	waits time.Duration // until then
}

// TestRequestsAreQueued has requests come while one of another peer has 60 bytes of 100.
func TestRequestsAreQueued(t *testing.T) {
	const timeout = 10 * time.Second
	p := peers(4)
	tests := map[string]struct {
		reason   string
		ends     time.Duration // of the first request
		lasts    time.Duration // of the others
		requests []request
	}{
		"fits":     {"no request is queued without need", time.Hour, time.Second, []request{{p[1], 40, -1, 0}}},
		"in time":  {"the memory comes in time", 5 * time.Second, time.Second, []request{{p[1], 50, -1, 5 * time.Second}}},
		"too long": {"a caller has to hear of it", time.Minute, time.Second, []request{{p[1], 50, fault.Exhausted, timeout}}},
		"overtakes": {
			"a small request does not wait for a large one", time.Minute, time.Second,
			[]request{{p[1], 50, fault.Exhausted, timeout}, {p[2], 20, -1, 0}, {p[2], 20, -1, 0}},
		},
		"overtakes no more": {
			"as many bytes as the budget have overtaken the first", time.Minute, time.Second / 2,
			[]request{{p[1], 50, fault.Exhausted, timeout}, {p[2], 40, -1, 0}, {p[3], 40, -1, 0}, {p[2], 40, -1, 0}, {p[3], 1, -1, 6 * time.Second}},
		},
		"too many":  {"the queue is bounded too", 5 * time.Second, time.Second, []request{{p[1], 50, -1, 5 * time.Second}, {p[2], 60, fault.Exhausted, 0}}},
		"of a peer": {"one peer has half of the queue", 5 * time.Second, time.Second, []request{{p[1], 45, -1, 5 * time.Second}, {p[1], 45, fault.Exhausted, 0}, {p[2], 45, -1, 3 * time.Second}}},
		"larger":    {"one larger than the budget is admitted alone", 5 * time.Second, time.Second, []request{{p[1], 1000, -1, 5 * time.Second}}},
		"as soon as": {
			"as soon as they fit, and one after the other", time.Second / 2, 3 * time.Second,
			[]request{{p[1], 70, -1, time.Second / 2}, {p[2], 55, -1, 2500 * time.Millisecond}, {p[3], 45, -1, 1500 * time.Millisecond}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &memoryBudget{limit: 100, timeout: timeout}
				first := &reservation{budget: all, from: p[0]}
				if err := first.acquire(t.Context(), 60); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tc.ends, first.release)
				for i, req := range tc.requests {
					go func() {
						r := &reservation{budget: all, from: req.from}
						begin := time.Now()
						err := r.acquire(t.Context(), req.size)
						if waits := time.Since(begin); waits != req.waits {
							t.Errorf("request %d of %d bytes waits for %v, want %v: %s", i, req.size, waits, req.waits, tc.reason)
						}
						if _, hint := fault.RetryAfter(err); (err == nil) != (req.want < 0) || err != nil && (fault.Of(err) != req.want || !hint) {
							t.Errorf("request %d of %d bytes: %v of class %v, want %v: %s", i, req.size, err, fault.Of(err), req.want, tc.reason)
						}
						if err == nil {
							r.received(req.size)
						}
						<-time.After(tc.lasts)
						r.release()
					}()
					<-time.After(time.Second)
				}
				<-time.After(2 * time.Hour)
				synctest.Wait() // for what these hours have released
				if all.reserved != 0 || len(all.queue) != 0 || len(all.reading.conns)+len(all.reading.peers) != 0 {
					t.Errorf("afterwards %d bytes are reserved, %d requests queued, %v and %v read", all.reserved, len(all.queue), all.reading.conns, all.reading.peers)
				}
			})
		})
	}
}

// greedyClients are ways in which one client makes many requests of 60 bytes at a time, and what it
// gets of a budget of 1000 bytes while it neither sends them to their end nor reads answers.
var greedyClients = map[string]struct {
	from   func(i int) source
	want   int64
	reason string
}{
	"one connection": {
		func(int) source { return source{conn: "10.0.0.1:1", peer: "10.0.0.1"} }, 240,
		"a fourth of the budget, and what fits of it",
	},
	"one peer": {
		func(i int) source { return source{conn: fmt.Sprintf("10.0.0.1:%d", i), peer: "10.0.0.1"} }, 480,
		"a half of the budget",
	},
}

// other is where another client is.
var other = source{conn: "10.0.0.2:1", peer: "10.0.0.2"}

// TestSlowUploadsLeaveMemory has clients announce large requests and send none of them.
func TestSlowUploadsLeaveMemory(t *testing.T) {
	for name, tc := range greedyClients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &memoryBudget{limit: 1000, timeout: 10 * time.Second}
				for i := range 22 {
					go func() {
						r := &reservation{budget: all, from: tc.from(i)}
						if err := r.acquire(t.Context(), 60); err != nil && fault.Of(err) != fault.Exhausted {
							t.Error(err)
						}
						<-time.After(time.Minute)
						r.release()
					}()
				}
				synctest.Wait()
				if got := all.now(); got != tc.want {
					t.Errorf("%d bytes are reserved, want %d: %s", got, tc.want, tc.reason)
				}
				for range 5 { // they are received at once, and evaluated for a while
					begin, r := time.Now(), &reservation{budget: all, from: other}
					if err := r.acquire(t.Context(), 100); err != nil || time.Since(begin) > 0 {
						t.Errorf("another client waits for %v: %v", time.Since(begin), err)
					}
					r.received(100)
					defer r.release()
				}
				<-time.After(time.Hour)
			})
		})
	}
}

// TestEvaluationsLeaveMemory has one client send requests whose evaluations hang.
func TestEvaluationsLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &memoryBudget{limit: 1000, timeout: 10 * time.Second}
		p := peers(2)
		for i := range 20 {
			go func() {
				from := source{conn: fmt.Sprintf("%s:%d", p[0].peer, i), peer: p[0].peer}
				r := &reservation{budget: all, from: from}
				switch err := r.acquire(t.Context(), 60); {
				case err == nil:
					r.received(60)
				case fault.Of(err) != fault.Exhausted || !strings.Contains(err.Error(), "evaluated"):
					t.Errorf("refused with %v of class %v, want what to do", err, fault.Of(err))
				}
				<-time.After(time.Minute)
				r.release()
			}()
		}
		synctest.Wait()
		if got, want := all.now(), int64(720); got != want {
			t.Errorf("%d bytes are reserved, want %d: three fourths of the budget, and what fits of it", got, want)
		}
		for range 2 {
			begin, r := time.Now(), &reservation{budget: all, from: p[1]}
			if err := r.acquire(t.Context(), 100); err != nil || time.Since(begin) > 0 {
				t.Errorf("another client waits for %v: %v", time.Since(begin), err)
			}
			r.received(100)
			defer r.release()
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got, want := all.now(), int64(200); got != want || len(all.peers) != 1 {
			t.Errorf("afterwards %d bytes are reserved, want %d, by %v", got, want, all.peers)
		}
	})
}

// TestLargeRequestsOfABusyConnection has one wait until nothing else of its connection is
// read, while small requests come all the time: they overtake it for a while only.
func TestLargeRequestsOfABusyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := peers(1)[0]
		all := &memoryBudget{limit: 1000, timeout: time.Minute}
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() {
				for ctx.Err() == nil { // each is read for 100 ms
					r := &reservation{budget: all, from: from}
					if err := r.acquire(ctx, 10); err == nil {
						<-time.After(100 * time.Millisecond)
					}
					r.release()
				}
			}()
			<-time.After(30 * time.Millisecond)
		}
		begin, large := time.Now(), &reservation{budget: all, from: from}
		if err := large.acquire(t.Context(), 400); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 500*time.Millisecond || took > 2*time.Second {
			t.Errorf("it waits for %v, want about a second: 250 bytes overtake it at 300 per second", took)
		}
		large.release()
		cancel()
		<-time.After(time.Second)
	})
}

// TestUnreadRequestsLeaveTheWindow has many requests of one connection queued: what of
// them is in the receive buffers must not fill the connection's window.
func TestUnreadRequestsLeaveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peers(2)
		all := &memoryBudget{limit: 1 << 30, timeout: time.Second}
		first := &reservation{budget: all, from: p[0]}
		if err := first.acquire(t.Context(), 1<<30); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			go func() { _ = (&reservation{budget: all, from: p[1]}).acquire(t.Context(), 1<<20) }()
		}
		synctest.Wait()
		if got, want := length(all), maxUnread/serve.ReceiveWindow; got != want {
			t.Errorf("%d requests are queued, want %d", got, want)
		}
		<-time.After(time.Minute)
	})
}

func TestTheQueueHasALength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peers(2000)
		all := &memoryBudget{limit: 10000, timeout: time.Second}
		first := &reservation{budget: all, from: p[0]}
		if err := first.acquire(t.Context(), 10000); err != nil {
			t.Fatal(err)
		}
		for i := range 1999 {
			go func() { _ = (&reservation{budget: all, from: p[i+1]}).acquire(t.Context(), 1) }()
		}
		synctest.Wait()
		if got := length(all); got != maxQueued {
			t.Errorf("%d requests are queued, want %d", got, maxQueued)
		}
		<-time.After(time.Minute)
	})
}

func TestACallerThatLeavesIsQueuedNoMore(t *testing.T) {
	p := peers(2)
	all := &memoryBudget{limit: 100, timeout: time.Hour}
	first, r := &reservation{budget: all, from: p[0]}, &reservation{budget: all, from: p[1]}
	if err := first.acquire(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.acquire(ctx, 1); fault.Of(err) != fault.Canceled {
		t.Errorf("acquire = %v of class %v, want canceled", err, fault.Of(err))
	}
	first.release()
	if err := r.acquire(ctx, 1); err != nil {
		t.Errorf("with memory at once: %v", err)
	}
}

// TestACallerThatLeavesAdmitsTheNext has a request that may not be overtaken any more, and
// one behind it that would fit.
func TestACallerThatLeavesAdmitsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peers(3)
		all := &memoryBudget{limit: 100, timeout: time.Hour}
		first := &reservation{budget: all, from: p[0]}
		if err := first.acquire(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _ = (&reservation{budget: all, from: p[1]}).acquire(ctx, 50) }()
		synctest.Wait()
		all.mu.Lock()
		all.queue[0].overtaken = 100
		all.mu.Unlock()
		admitted := make(chan error, 1)
		go func() { admitted <- (&reservation{budget: all, from: p[2]}).acquire(t.Context(), 20) }()
		synctest.Wait()
		if got := length(all); got != 2 {
			t.Fatalf("%d requests are queued, want 2", got)
		}
		begin := time.Now()
		leave()
		if err := <-admitted; err != nil || time.Since(begin) > 0 {
			t.Errorf("the next request waits for %v: %v", time.Since(begin), err)
		}
	})
}

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
		MaxMessageBytes: 100, MaxInHandBytes: 100, Telemetry: telemetry.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(list))
	h.Bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if _, err := h.EvaluateFunction(r.Context(), &evaluator.EvaluateFunctionRequest{Image: "fn:v1", ResourceList: []byte(list)}); err != nil {
			t.Error(err)
		}
		if got, want := h.budget.now(), int64(60); got != want {
			t.Errorf("%d bytes are reserved while the response is written, want %d", got, want)
		}
		other := &reservation{budget: &h.budget, from: peers(1)[0]}
		if err := other.acquire(r.Context(), 50); fault.Of(err) != fault.Exhausted {
			t.Errorf("another request is admitted: %v", err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if got := h.budget.now(); got != 0 {
		t.Errorf("%d bytes are reserved afterwards", got)
	}
}

// TestUnknownFieldsAreCounted has a request that is nothing but a field of a later version.
func TestUnknownFieldsAreCounted(t *testing.T) {
	message := protowire.AppendTag(nil, 15, protowire.BytesType)
	message = protowire.AppendBytes(message, make([]byte, 5000))
	h, err := New(Config{MaxMessageBytes: 10000, MaxInHandBytes: 10000, Telemetry: telemetry.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	evaluated := false
	_, service := evaluatorconnect.NewFunctionEvaluatorHandler(evaluate(func(*evaluator.EvaluateFunctionRequest) {
		evaluated = true
		if got := h.budget.now(); got < int64(len(message)) {
			t.Errorf("%d bytes are reserved during the evaluation, want %d", got, len(message))
		}
	}))
	for _, length := range []int64{int64(len(message)), -1} {
		r := httptest.NewRequest(http.MethodPost, evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure, bytes.NewReader(message))
		r.ContentLength = length
		r.Header.Set("Content-Type", "application/proto")
		h.Bounded(service).ServeHTTP(httptest.NewRecorder(), r)
		if !evaluated {
			t.Error("the request was not evaluated")
		}
		evaluated = false
	}
}

// evaluate is an evaluator that looks at requests.
type evaluate func(*evaluator.EvaluateFunctionRequest)

func (e evaluate) EvaluateFunction(_ context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	e(req)
	return &evaluator.EvaluateFunctionResponse{}, nil
}

// TestMemoryIsReservedBeforeARequestIsRead has a request of which nothing but its length has
// come: another one that does not fit beside it is refused before it is read.
func TestMemoryIsReservedBeforeARequestIsRead(t *testing.T) {
	h, err := New(Config{MaxMessageBytes: 100, MaxInHandBytes: 100, Telemetry: telemetry.Discard()})
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
				if got := h.budget.now(); got != first.want {
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
			if got := h.budget.now(); got != 0 {
				t.Errorf("%d bytes are reserved afterwards", got)
			}
		})
	}
}
