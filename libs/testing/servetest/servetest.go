// SPDX-License-Identifier: Apache-2.0

// Package servetest runs a service or a background task in a test, in the same way as a program. A service listens on
// a free port of the loopback interface.
package servetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/grpchealth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
)

// Start creates a service with the function build, and runs the service until the test ends. It returns the host:port
// of the service's first endpoint. The test fails if the service fails.
func Start(t testing.TB, build func(servermain.Frame) (serve.Component, error)) string {
	t.Helper()
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	component, err := build(frame)
	if err != nil {
		t.Fatalf("make the service: %v", err)
	}
	listener := Listen(t)
	component.Endpoints[0].Listener = listener
	Go(t, func(ctx context.Context) error {
		return serve.Run(ctx, serve.Config{ShutdownTimeout: 10 * time.Second}, frame.Telemetry.Log, frame.Health, component)
	})
	await.Equal(t, "the service is ready", func() grpchealth.Status {
		resp, err := frame.Health.Checker().Check(t.Context(), &grpchealth.CheckRequest{})
		if err != nil {
			t.Fatalf("wait until the service is ready: %v", err)
		}
		return resp.Status
	}, grpchealth.StatusServing)
	return listener.Addr().String()
}

// Go runs a background task until the test ends or the caller calls stop. The function stop waits until the task has
// returned. The test fails if the task returns an error.
func Go(t testing.TB, task func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- task(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the task ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Listen opens a free port of the loopback interface until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("open a port: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// HTTP2Client returns a client that speaks HTTP/2 without TLS.
func HTTP2Client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Dial returns a connection without TLS for clients of the official gRPC library.
func Dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatalf("connect to %s: %v", address, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
