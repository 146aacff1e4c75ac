// SPDX-License-Identifier: Apache-2.0

// Package leaseserver serves a lease.Manager over the network in tests, as the pod-manager does.
package leaseserver

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// Start serves m until the test ends, and returns the server's address.
func Start(t testing.TB, m lease.Manager) string {
	t.Helper()
	return StartUntil(t.Context, t, m)
}

// StartUntil is like [Start], but can simulate the shutdown of a pod-manager. The argument stopping is a function that
// returns a context. When the test cancels this context, waiting requests for leases fail (see [lease.Handler]).
func StartUntil(stopping func() context.Context, t testing.TB, m lease.Manager) string {
	t.Helper()
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: podmanagerv1connect.PodManagerServiceName, Streams: true,
			MaxRequestBytes: lease.MaxRequestBytes, MaxResponseBytes: 1 << 20,
			Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
				return podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(stopping, m), options...)
			},
		})
		return serve.Component{Endpoints: []serve.Endpoint{{Name: "pod-manager", Handler: handler}}}, nil
	})
}
