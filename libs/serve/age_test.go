// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// countingListener counts the connections that it accepts.
type countingListener struct {
	net.Listener
	accepted atomic.Int32
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

// startAging serves with connections that become that old.
func startAging(t *testing.T, age time.Duration, handler http.Handler) *countingListener {
	t.Helper()
	listener := &countingListener{Listener: servetest.Listen(t)}
	p := start(t, serve.Config{ShutdownTimeout: time.Minute}, serve.Component{
		Endpoints: []serve.Endpoint{{Name: "test", Listener: listener, Handler: handler, MaxConnectionAge: age}},
	})
	t.Cleanup(func() {
		p.stop()
		if err := <-p.ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return listener
}

// slowEcho returns what it gets, after a moment.
type slowEcho struct{}

func (slowEcho) EvaluateFunction(
	_ context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	<-time.After(time.Millisecond)
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

// TestConnectionsAreReplacedWithoutFailures has many callers on the one connection that
// the official gRPC client keeps, as Porch does.
func TestConnectionsAreReplacedWithoutFailures(t *testing.T) {
	const callers, connections = 8, 6
	_, handler := evaluatorconnect.NewFunctionEvaluatorHandler(slowEcho{})
	listener := startAging(t, 30*time.Millisecond, handler)
	conn := servetest.Dial(t, listener.Addr().String())
	client := evaluator.NewFunctionEvaluatorClient(conn)
	list := []byte(strings.Repeat("x", 300<<10)) // more than the client keeps to repeat it
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			for listener.accepted.Load() < connections && !t.Failed() {
				resp, err := client.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{ResourceList: list})
				if err != nil || len(resp.GetResourceList()) != len(list) {
					t.Errorf("after %d connections: %d bytes, %v", listener.accepted.Load(), len(resp.GetResourceList()), err)
				}
			}
		})
	}
	calls.Wait()
}

// TestConnectionsAreReplacedWhileDraining has callers whose connection is young when the
// server is told to stop. What they send then is answered, and asks them to leave.
func TestConnectionsAreReplacedWhileDraining(t *testing.T) {
	_, handler := evaluatorconnect.NewFunctionEvaluatorHandler(slowEcho{})
	listener := &countingListener{Listener: servetest.Listen(t)}
	over := make(chan struct{})
	p := start(t, serve.Config{DrainDelay: time.Hour, ShutdownTimeout: time.Minute}, serve.Component{
		Endpoints: []serve.Endpoint{{Name: "test", Listener: listener, Handler: handler, MaxConnectionAge: time.Hour}},
		// It drains for as long as the test takes.
		Tasks: []serve.Task{func(context.Context) error { <-over; return errors.New("over") }},
	})
	t.Cleanup(func() { close(over); <-p.ended })
	conn := servetest.Dial(t, listener.Addr().String())
	client := evaluator.NewFunctionEvaluatorClient(conn)
	call := func() {
		list := []byte(strings.Repeat("x", 300<<10))
		resp, err := client.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{ResourceList: list})
		if err != nil || len(resp.GetResourceList()) != len(list) {
			t.Errorf("after %d connections: %d bytes, %v", listener.accepted.Load(), len(resp.GetResourceList()), err)
		}
	}
	for range 10 {
		call()
	}
	if n := listener.accepted.Load(); n != 1 {
		t.Fatalf("%d connections before the server is told to stop", n)
	}
	p.stop()
	<-p.stopping
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for listener.accepted.Load() < 4 && !t.Failed() {
				call()
			}
		})
	}
	calls.Wait()
}

// TestConnectionsAge counts the connections of a client that makes one request after
// the other, with and without an age.
func TestConnectionsAge(t *testing.T) {
	const requests = 10
	tests := map[string]struct {
		reason   string
		h2       bool
		age      time.Duration
		replaced bool
	}{
		"HTTP/2":          {"each is old at once", true, time.Nanosecond, true},
		"HTTP/1.1":        {"likewise", false, time.Nanosecond, true},
		"HTTP/2, young":   {"nothing is replaced before its time", true, time.Hour, false},
		"HTTP/1.1, young": {"likewise", false, time.Hour, false},
		"no age":          {"connections stay for ever", true, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			listener := startAging(t, tc.age, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprint(w, r.Proto)
			}))
			c, transport := client(tc.h2)
			defer transport.CloseIdleConnections()
			for range requests {
				if got := get(c, "http://"+listener.Addr().String()); !strings.HasPrefix(got, "HTTP/") {
					t.Errorf("got %q", got)
				}
			}
			// Go's client sometimes opens one more than it needs.
			if got := listener.accepted.Load(); (tc.replaced && got < requests) || (!tc.replaced && got > requests/2) {
				t.Errorf("%d connections for %d requests: %s", got, requests, tc.reason)
			}
		})
	}
}

// TestStreamsOutliveTheirConnectionsAge has a stream that goes on for as long as its
// connection is replaced, and after it.
func TestStreamsOutliveTheirConnectionsAge(t *testing.T) {
	proceed := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-proceed
		_, _ = fmt.Fprintln(w, strings.Repeat("x", 1<<20))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Proto) })
	listener := startAging(t, time.Nanosecond, mux)
	c, transport := client(true)
	defer transport.CloseIdleConnections()
	resp, err := c.Get("http://" + listener.Addr().String() + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); line != "first\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	for listener.accepted.Load() < 3 {
		if got := get(c, "http://"+listener.Addr().String()); got != "HTTP/2.0" {
			t.Fatalf("got %q", got)
		}
	}
	close(proceed)
	if line, err := lines.ReadString('\n'); len(line) != 1<<20+1 {
		t.Errorf("the stream ended after %d bytes: %v", len(line), err)
	}
}
