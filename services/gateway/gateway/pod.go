// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
)

const (
	// connectTimeout limits the time for connecting to a function pod that has just started.
	connectTimeout = 5 * time.Second
	// maxIdleConns is the maximum number of idle connections to function pods. They use up to 30 MB, about 30 KB each.
	maxIdleConns = 1000
)

func newPodConns(cfg Config, services Services, frame servermain.Frame) *podconn.Pool {
	return podconn.New(podconn.Config{
		Idle: cfg.Pod.IdleTimeout, Max: maxIdleConns,
		MaxMessageBytes: int(cfg.MaxMessageBytes), Identity: cmp.Or(services.PodIdentity, frame.Identity),
		Telemetry: frame.Telemetry,
	})
}

// poolService returns a read-only RPC service that lists the function pods of the pod-manager m. Users can then list
// pods through the gateway, without the pod-manager's address.
func poolService(cfg Config, m lease.Manager, q *queries, frame servermain.Frame) rpcserve.Service {
	return rpcserve.Service{
		Name: podmanagerv1connect.PodManagerServiceName, Streams: true,
		MaxRequestBytes: lease.MaxRequestBytes, MaxResponseBytes: int(cfg.MaxMessageBytes),
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			handler := lease.Handler(frame.Health.Stopping, readOnly{m})
			path, served := podmanagerv1connect.NewPodManagerServiceHandler(handler, options...)
			return path, q.limitQueries(served)
		},
	}
}

// readOnly is a pod-manager for callers of the gateway. It lists function pods, but grants no leases.
type readOnly struct{ lease.Manager }

// Lease rejects all requests. With a lease, a caller could call the pod directly, without the gateway.
func (readOnly) Lease(context.Context, *lease.Open, func(*lease.Waiting)) (lease.Lease, error) {
	return nil, fault.New(fault.Denied, "the gateway grants no leases: call EvaluateFunction, or the pod-manager itself")
}
