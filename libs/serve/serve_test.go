// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/grpchealth"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is one Run in the background.
type program struct {
	health   *serve.Health
	stop     context.CancelFunc
	stopping chan struct{}
	ended    chan error
}

// onStopping closes a channel at the log line for it.
type onStopping chan struct{}

func (c onStopping) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("msg=stopping ")) {
		close(c)
	}
	return len(line), nil
}

func start(t *testing.T, cfg serve.Config, components ...serve.Component) *program {
	t.Helper()
	return startWith(t, new(serve.Health), cfg, components...)
}

// startWith starts a program with the given health.
func startWith(t *testing.T, health *serve.Health, cfg serve.Config, components ...serve.Component) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{health: health, stop: cancel, stopping: make(chan struct{}), ended: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(onStopping(p.stopping), nil))
	go func() {
		p.ended <- serve.Run(ctx, cfg, log, p.health, components...)
	}()
	t.Cleanup(cancel)
	return p
}

func (p *program) status(t *testing.T) grpchealth.Status {
	t.Helper()
	resp, err := p.health.Checker().Check(t.Context(), &grpchealth.CheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status
}

func (p *program) awaitServing(t *testing.T) {
	t.Helper()
	await.Equal(t, "the status", func() grpchealth.Status { return p.status(t) }, grpchealth.StatusServing)
}

// client speaks HTTP/1.1 or HTTP/2 without TLS, one connection a request.
func client(h2 bool) (*http.Client, *http.Transport) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	transport := &http.Transport{Protocols: protocols}
	return &http.Client{Transport: transport}, transport
}

func TestRequestInFlightFinishes(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			listener, arrived, proceed := servetest.Listen(t), make(chan struct{}), make(chan struct{})
			taskEnded := make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-proceed
				select {
				case <-taskEnded:
					http.Error(w, "the task ended before the request", http.StatusInternalServerError)
				default:
					_, _ = fmt.Fprint(w, r.Proto)
				}
			})
			p := start(t, serve.Config{ShutdownTimeout: time.Minute}, serve.Component{
				Endpoints: []serve.Endpoint{{Name: "test", Listener: listener, Handler: handler}},
				Tasks:     []serve.Task{func(ctx context.Context) error { <-ctx.Done(); close(taskEnded); return nil }},
			})
			answer := make(chan string, 1)
			go func() {
				c, transport := client(h2)
				defer transport.CloseIdleConnections()
				answer <- get(c, "http://"+listener.Addr().String())
			}()
			<-arrived
			p.awaitServing(t) // a request may arrive before the program says so
			p.stop()
			<-p.stopping
			if got := p.status(t); got != grpchealth.StatusNotServing {
				t.Errorf("status while stopping is %v", got)
			}
			close(proceed)
			if got := <-answer; !strings.HasPrefix(got, "HTTP/") {
				t.Errorf("the request in flight got %q", got)
			}
			if err := <-p.ended; err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

func get(c *http.Client, url string) string {
	resp, err := c.Get(url)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func TestPortTaken(t *testing.T) {
	taken, free := servetest.Listen(t), servetest.Listen(t)
	defer func() { _ = taken.Close() }()
	p := start(t, serve.Config{ShutdownTimeout: time.Minute}, serve.Component{
		Endpoints: []serve.Endpoint{
			{Name: "free", Listener: free, Handler: http.NotFoundHandler()},
			{Name: "metrics", Address: taken.Addr().String(), Handler: http.NotFoundHandler()},
		},
		Tasks: []serve.Task{func(context.Context) error { t.Error("a task ran without its port"); return nil }},
	})
	err := <-p.ended
	if err == nil || !strings.Contains(err.Error(), "open the port of metrics") {
		t.Errorf("Run = %v, want an error that names the port", err)
	}
	if _, err := free.Accept(); err == nil {
		t.Error("the other port is still open")
	}
}

func TestFailingTaskStopsTheProgram(t *testing.T) {
	cause := errors.New("lost")
	p := start(t, serve.Config{DrainDelay: time.Hour, ShutdownTimeout: time.Minute}, serve.Component{
		Endpoints: []serve.Endpoint{{Name: "test", Listener: servetest.Listen(t), Handler: http.NotFoundHandler()}},
		Tasks: []serve.Task{
			func(context.Context) error { return nil },
			func(context.Context) error { return cause },
			func(ctx context.Context) error { <-ctx.Done(); return nil },
		},
	})
	if err := <-p.ended; !errors.Is(err, cause) {
		t.Errorf("Run = %v, want %v", err, cause)
	}
	if got := p.status(t); got != grpchealth.StatusNotServing {
		t.Errorf("status after the end is %v", got)
	}
}

func TestRequestThatDoesNotEndIsCut(t *testing.T) {
	listener, arrived := servetest.Listen(t), make(chan struct{})
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	p := start(t, serve.Config{ShutdownTimeout: time.Millisecond}, serve.Component{
		Endpoints: []serve.Endpoint{{Name: "slow", Listener: listener, Handler: handler}},
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c, transport := client(true)
		defer transport.CloseIdleConnections()
		get(c, "http://"+listener.Addr().String())
	}()
	<-arrived
	p.stop()
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "stop slow") {
		t.Errorf("Run = %v, want an error that names the endpoint", err)
	}
	<-answered
}

func TestHealthOfUnknownService(t *testing.T) {
	checker := new(serve.Health).Checker("known")
	if _, err := checker.Check(t.Context(), &grpchealth.CheckRequest{Service: "other"}); err == nil {
		t.Error("an unknown service has a status")
	}
	if _, err := checker.Check(t.Context(), &grpchealth.CheckRequest{Service: "known"}); err != nil {
		t.Error(err)
	}
}

func TestReadyOnceEveryPartIs(t *testing.T) {
	ready := make(chan struct{})
	p := start(t, serve.Config{ShutdownTimeout: time.Minute},
		serve.Component{Endpoints: []serve.Endpoint{
			{Name: "test", Listener: servetest.Listen(t), Handler: http.NotFoundHandler()},
		}},
		serve.Component{Ready: ready},
	)
	if got := p.status(t); got != grpchealth.StatusNotServing {
		t.Errorf("status before the component is ready is %v", got)
	}
	close(ready)
	p.awaitServing(t)
	select {
	case <-p.health.Stopping().Done():
		t.Error("stopping while it serves")
	default:
	}
	p.stop()
	<-p.health.Stopping().Done()
	if err := <-p.ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// TestProcessThatIsNotAbleIsNotReady: a named service does not serve then, and the process lives.
func TestProcessThatIsNotAbleIsNotReady(t *testing.T) {
	var able atomic.Bool
	health := new(serve.Health)
	health.Require(able.Load)
	p := startWith(t, health, serve.Config{ShutdownTimeout: time.Minute}, serve.Component{
		Endpoints: []serve.Endpoint{{Name: "test", Listener: servetest.Listen(t), Handler: http.NotFoundHandler()}},
	})
	check := func(service string) grpchealth.Status {
		resp, err := p.health.Checker("example.Service").Check(t.Context(), &grpchealth.CheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Status
	}
	p.awaitServing(t)
	if got := check("example.Service"); got != grpchealth.StatusNotServing {
		t.Errorf("the service is %v while the process is not able", got)
	}
	able.Store(true)
	if got := check("example.Service"); got != grpchealth.StatusServing {
		t.Errorf("the service is %v while the process is able", got)
	}
	p.stop()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}
