// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// caller is a balanced client of one method of a service with the name service.
type caller struct {
	call  *connect.Client[emptypb.Empty, wrapperspb.StringValue]
	tried atomic.Int32
}

// testClient returns a caller for the service at addresses.
func testClient(t *testing.T, dial dial, addresses ...string) *caller {
	t.Helper()
	return testClientOf(t, dial, func(context.Context, string) ([]string, error) { return slices.Clone(addresses), nil })
}

// testClientOf returns a caller of the service that lookup finds.
func testClientOf(t *testing.T, dial dial, lookup lookup) *caller {
	t.Helper()
	client, err := New("http://service:9449", nil, telemetry.Discard(), OverNetwork(dial, lookup))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := &caller{}
	count := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			c.tried.Add(1)
			return next(ctx, req)
		}
	})
	c.call = connect.NewClient[emptypb.Empty, wrapperspb.StringValue](client.HTTP, "http://service:9449/test",
		append(client.Options, client.Balanced(), connect.WithInterceptors(count))...)
	return c
}

// answer is the method: what a replica at an address answers.
type answer func(ctx context.Context, address string) (string, error)

// serveAt starts a replica, with its health.
func serveAt(t *testing.T, network *pipenet.Network, address string, answer answer) *pipenet.Host {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/test", connect.NewUnaryHandler("/test", func(ctx context.Context, _ *connect.Request[emptypb.Empty],
	) (*connect.Response[wrapperspb.StringValue], error) {
		text, err := answer(ctx, address)
		return connect.NewResponse(wrapperspb.String(text)), err
	}))
	mux.Handle(grpc_health_v1.Health_Check_FullMethodName, connect.NewUnaryHandler(
		grpc_health_v1.Health_Check_FullMethodName, func(context.Context,
			*connect.Request[grpc_health_v1.HealthCheckRequest],
		) (*connect.Response[grpc_health_v1.HealthCheckResponse], error) {
			return connect.NewResponse(new(grpc_health_v1.HealthCheckResponse)), nil
		}))
	return network.Serve(t, address+":9449", mux)
}

// refusing is a network that refuses calls: each pass has one connection for the call.
func refusing(network *pipenet.Network, refusals int32) dial {
	var begin time.Time
	waits := []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		if begin.IsZero() {
			begin = time.Now()
		}
		if int(refusals) >= len(waits) || time.Since(begin) < waits[refusals] {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}
		return network.Dial(ctx, kind, address)
	}
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
				var network pipenet.Network
				serveAt(t, &network, "10.0.0.1", func(context.Context, string) (string, error) { return "", tc.answer })
				client := testClient(t, refusing(&network, tc.refusals), "10.0.0.1")
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				begin := time.Now()
				_, err := client.call.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
				if took := time.Since(begin); took != tc.takes || client.tried.Load() != tc.tried {
					t.Errorf("tried %d times in %s, want %d in %s: %s", client.tried.Load(), took, tc.tried, tc.takes, tc.reason)
				}
				if (err == nil) != (tc.code == 0) || (err != nil && connect.CodeOf(err) != tc.code) {
					t.Errorf("got %v, want %v: %s", err, tc.code, tc.reason)
				}
			})
		})
	}
}
