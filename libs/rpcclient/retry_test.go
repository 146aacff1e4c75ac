// SPDX-License-Identifier: Apache-2.0

package rpcclient_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/krm-function-runner/function-runner/libs/rpcclient"
)

// refusing is a network that refuses the first connections.
type refusing struct {
	http.RoundTripper
	refusals int32
	tried    atomic.Int32
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.tried.Add(1) <= r.refusals {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	return r.RoundTripper.RoundTrip(req)
}

// answering answers each call itself.
type answering struct{ handler http.Handler }

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	a.handler.ServeHTTP(recorder, req)
	return recorder.Result(), nil
}

func TestRetry(t *testing.T) {
	tests := []struct {
		name     string
		refusals int32
		answer   error
		deadline time.Duration // 0: none
		tried    int32
		takes    time.Duration
		code     connect.Code // 0: success
		reason   string
	}{
		{name: "reached", tried: 1, reason: "there is nothing to wait for"},
		{
			name: "reached soon", refusals: 3, tried: 4, takes: 350 * time.Millisecond,
			reason: "a Service's rules come a moment later",
		},
		{
			name: "not reached", refusals: 100, tried: 19, takes: 14550 * time.Millisecond, code: connect.CodeUnavailable,
			reason: "callers must see the error",
		},
		{
			name: "deadline", refusals: 100, deadline: 100 * time.Millisecond, tried: 2, takes: 100 * time.Millisecond,
			code: connect.CodeUnavailable, reason: "each wait ends with its caller, and returns the cause",
		},
		{
			name: "unavailable behind it", answer: connect.NewError(connect.CodeUnavailable, errors.New("registry is down")),
			tried: 1, code: connect.CodeUnavailable, reason: "an answer is an answer",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := connect.NewUnaryHandler("/test", func(context.Context,
					*connect.Request[emptypb.Empty],
				) (*connect.Response[emptypb.Empty], error) {
					return connect.NewResponse(&emptypb.Empty{}), tc.answer
				})
				network := &refusing{RoundTripper: answering{handler}, refusals: tc.refusals}
				client := connect.NewClient[emptypb.Empty, emptypb.Empty](&http.Client{Transport: network}, "http://service/test",
					rpcclient.Retry())
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				begin := time.Now()
				_, err := client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
				if took := time.Since(begin); took != tc.takes || network.tried.Load() != tc.tried {
					t.Errorf("tried %d times in %s, want %d in %s: %s", network.tried.Load(), took, tc.tried, tc.takes, tc.reason)
				}
				if (err == nil) != (tc.code == 0) || err != nil && connect.CodeOf(err) != tc.code {
					t.Errorf("got %v, want %v: %s", err, tc.code, tc.reason)
				}
			})
		})
	}
}
