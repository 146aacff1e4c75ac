package rpcserve_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

// pipes is a network without machines: a listener and what dials it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

// servePipes serves moody until stop, and returns a client for its plain requests.
func servePipes(t *testing.T, protocol func(*http.Protocols, bool)) (client *http.Client, stop func()) {
	t.Helper()
	handler := newMoody(t, 1<<20)
	protocols := new(http.Protocols)
	protocol(protocols, true)
	network := make(pipes)
	server := &http.Server{Handler: handler, Protocols: protocols}
	go func() { _ = server.Serve(network) }()
	transport := &http.Transport{Protocols: protocols, DialContext: network.dial}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	}
}

// trickle brings data in parts of the given size, one in each interval, and then nothing
// any more if it is to stop there.
type trickle struct {
	data   []byte
	part   int
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
	select {
	case <-time.After(r.every):
	case <-r.closed:
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.part)], r.data)
	r.data = r.data[n:]
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

// TestRequestsHaveToGoOn has clients of each protocol that send slowly, or stop.
func TestRequestsHaveToGoOn(t *testing.T) {
	message, err := proto.Marshal(&evaluator.EvaluateFunctionRequest{ResourceList: bytes.Repeat([]byte("a"), 100<<10)})
	if err != nil {
		t.Fatal(err)
	}
	envelope := append([]byte{0}, binary.BigEndian.AppendUint32(nil, uint32(len(message)))...)
	envelope = append(envelope, message...)
	callers := map[string]struct {
		contentType string
		body        []byte
		protocol    func(*http.Protocols, bool)
	}{
		"gRPC":                {"application/grpc", envelope, (*http.Protocols).SetUnencryptedHTTP2},
		"gRPC-Web":            {"application/grpc-web+proto", envelope, (*http.Protocols).SetHTTP1},
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
		"stopped at once":   {"there is not even a length", 2, 2, 0, false},
		"stopped":           {"it brought enough until then", 50 << 10, 16 << 10, 0, false},
		"too slow":          {"a byte now and then is nothing", 1 << 20, 500, time.Second, false},
		"slow and steady":   {"it takes minutes, and gets there", 1 << 20, 600, time.Second, true},
		"with long pauses":  {"what counts is what comes in half a minute", 1 << 20, 17 << 10, 29 * time.Second, true},
		"as fast as it can": {"as ever", 1 << 20, 1 << 20, 0, true},
	}
	for protocol, caller := range callers {
		for name, tc := range tests {
			t.Run(protocol+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, stop := servePipes(t, caller.protocol)
					body := &trickle{data: caller.body[:min(tc.brings, len(caller.body))], part: tc.part, every: tc.every, stalls: !tc.ok, closed: make(chan struct{})}
					answer := post(t, client, caller.contentType, body)
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

// post sends a request and returns all of the answer.
func post(t *testing.T, client *http.Client, contentType string, body io.ReadCloser) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server"+evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure, body)
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
