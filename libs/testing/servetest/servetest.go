// SPDX-License-Identifier: Apache-2.0

// Package servetest runs a service or a background task in a test, as a program does. A service listens on a free
// port of the loopback interface.
package servetest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Start runs the service that build creates until the test ends. It returns the host:port of the service's first
// endpoint. The test fails if the service fails.
func Start(t testing.TB, build func(servermain.Frame) (serve.Component, error)) string {
	t.Helper()
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	component, err := build(frame)
	if err != nil {
		t.Fatalf("make the service: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("open a port: %v", err)
	}
	component.Endpoints[0].Listener = listener
	Go(t, func(ctx context.Context) error {
		return serve.Run(ctx, serve.Config{ShutdownTimeout: 10 * time.Second}, frame.Telemetry.Log, frame.Health, component)
	})
	awaitReady(t, frame.Health)
	return listener.Addr().String()
}

// Go runs a background task until the test ends or stop is called. stop waits until the task has returned. The test
// fails if the task returns an error.
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

// awaitReady waits until health checks succeed.
func awaitReady(t testing.TB, health *serve.Health) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		resp, err := health.Checker().Check(t.Context(), &grpchealth.CheckRequest{})
		if err != nil {
			t.Fatalf("wait until the service is ready: %v", err)
		}
		if resp.Status == grpchealth.StatusServing {
			return
		}
	}
}
