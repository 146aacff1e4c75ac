// SPDX-License-Identifier: Apache-2.0

package rpcserve_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// servePipes serves moody until stop, and returns a client for its plain requests.
func servePipes(t *testing.T, protocol func(*http.Protocols, bool)) (client *http.Client, stop func()) {
	t.Helper()
	return serveHandler(newMoody(4<<20), protocol)
}

// serveHandler serves a handler in the same way.
func serveHandler(handler http.Handler, protocol func(*http.Protocols, bool)) (client *http.Client, stop func()) {
	protocols := new(http.Protocols)
	protocol(protocols, true)
	network := pipenet.Listen()
	server := &http.Server{Handler: handler, Protocols: protocols}
	go func() { _ = server.Serve(network) }()
	transport := &http.Transport{Protocols: protocols, DialContext: network.DialContext}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	}
}

// trickle brings data in parts of the given size, one in each interval. After them it
// stalls or ends.
type trickle struct {
	data   []byte
	part   int
	left   int // of this part
	every  time.Duration
	stalls bool
	closed chan struct{}
}

func (r *trickle) Read(p []byte) (int, error) {
	if len(r.data) == 0 && r.stalls {
		<-r.closed
	}
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	if r.left == 0 {
		select {
		case <-time.After(r.every):
		case <-r.closed:
			return 0, io.EOF
		}
		r.left = r.part
	}
	n := copy(p[:min(len(p), r.left)], r.data)
	r.data = r.data[n:]
	r.left -= n
	return n, nil
}

func (r *trickle) Close() error {
	select {
	case <-r.closed:
	default:
		close(r.closed)
	}
	return nil
}

// TestRequestsHaveToKeepThePace has clients of each protocol that send slowly, or stop.
func TestRequestsHaveToKeepThePace(t *testing.T) {
	message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{ResourceList: bytes.Repeat([]byte("a"), 3<<20)})
	if err != nil {
		t.Fatal(err)
	}
	callers := map[string]struct {
		contentType string
		body        []byte
		protocol    func(*http.Protocols, bool)
	}{
		"gRPC":                {"application/grpc", envelope(0, message), (*http.Protocols).SetUnencryptedHTTP2},
		"gRPC-Web":            {"application/grpc-web+proto", envelope(0, message), (*http.Protocols).SetHTTP1},
		"Connect over HTTP/1": {"application/proto", message, (*http.Protocols).SetHTTP1},
		"Connect over HTTP/2": {"application/proto", message, (*http.Protocols).SetUnencryptedHTTP2},
	}
	tests := map[string]struct {
		reason string
		brings int // bytes
		part   int
		every  time.Duration
		ok     bool
	}{
		"stopped at once": {"not even a length has come", 2, 2, 0, false},
		"stopped":         {"what came before earns no more than the grace", 1 << 20, 16 << 10, 0, false},
		"too slow":        {"a trickle keeps its memory for hours", 4 << 20, 16 << 10, 25 * time.Second, false},
		// Not at whole seconds: over HTTP/1, a part that is written while the server gives up hides the answer.
		"half the pace":     {"it would take a minute and a half", 4 << 20, 32 << 10, 1003 * time.Millisecond, false},
		"slow and steady":   {"it takes longer than the grace, and keeps the pace", 4 << 20, 70 << 10, time.Second, true},
		"with pauses":       {"the pauses are shorter than the grace together", 4 << 20, 1 << 20, 9 * time.Second, true},
		"as fast as it can": {"as ever", 4 << 20, 4 << 20, 0, true},
	}
	for protocol, caller := range callers {
		for name, tc := range tests {
			t.Run(protocol+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, stop := servePipes(t, caller.protocol)
					body := &trickle{
						data: caller.body[:min(tc.brings, len(caller.body))], part: tc.part, every: tc.every, stalls: !tc.ok,
						closed: make(chan struct{}),
					}
					answer := post(t, client, evaluatePath, caller.contentType, body)
					if said := strings.Contains(answer, "given up"); said == tc.ok {
						t.Errorf("answered %.300q: %s", answer, tc.reason)
					}
					_ = body.Close()
					stop()
				})
			})
		}
	}
}

// TestHealthChecksHaveToKeepThePace has one that is never sent to its end.
func TestHealthChecksHaveToKeepThePace(t *testing.T) {
	for name, protocol := range map[string]func(*http.Protocols, bool){
		"HTTP/1": (*http.Protocols).SetHTTP1, "HTTP/2": (*http.Protocols).SetUnencryptedHTTP2,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, stop := servePipes(t, protocol)
				body := &trickle{data: []byte{10}, part: 1, stalls: true, closed: make(chan struct{})}
				if answer := post(t, client, healthPath, "application/proto", body); !strings.Contains(answer, "given up") {
					t.Errorf("answered %.300q", answer)
				}
				_ = body.Close()
				stop()
			})
		})
	}
}

// TestReflectionStreamsEnd has one whose client is silent after its first request.
func TestReflectionStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, stop := servePipes(t, (*http.Protocols).SetUnencryptedHTTP2)
		list := envelope(0, []byte{7<<3 | 2, 0})
		body := &trickle{data: list, part: len(list), stalls: true, closed: make(chan struct{})}
		begin := time.Now()
		answer := post(t, client, reflectionPath, "application/grpc", body)
		if !strings.Contains(answer, "evaluator.FunctionEvaluator") {
			t.Errorf("answered %.300q, want the services", answer)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("the stream ends after %v, want a minute", took)
		}
		_ = body.Close()
		stop()
	})
}

// echoOnce answers one message.
func echoOnce(_ context.Context, stream *connect.BidiStream[emptypb.Empty, emptypb.Empty]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	return stream.Send(&emptypb.Empty{})
}

// TestIdleStreamsStay has a client that opens a stream of a service, and sends its message
// much later: a lease is like that.
func TestIdleStreamsStay(t *testing.T) {
	const path = "/idle.Service/Stream"
	synctest.Test(t, func(t *testing.T) {
		cfg := rpcserve.Config{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: "idle.Service", Streams: true, MaxRequestBytes: 100, MaxResponseBytes: 100,
			Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
				return "/idle.Service/", connect.NewBidiStreamHandler(path, echoOnce, options...)
			},
		})
		client, stop := serveHandler(handler, (*http.Protocols).SetUnencryptedHTTP2)
		body := &trickle{data: envelope(0, nil), part: 5, every: time.Hour, closed: make(chan struct{})}
		if answer := post(t, client, path, "application/grpc", body); answer != string(envelope(0, nil)) {
			t.Errorf("answered %q, want a message", answer)
		}
		stop()
	})
}

// post sends a request and returns all of the answer.
func post(t *testing.T, client *http.Client, path, contentType string, body io.ReadCloser) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	_ = resp.Body.Close()
	return resp.Header.Get("Grpc-Message") + resp.Trailer.Get("Grpc-Message") + string(answer)
}
