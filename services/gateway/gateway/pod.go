// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podeval"
)

// newPod returns the pod evaluator and the task that it needs.
func newPod(cfg Config, services Services, frame program.Frame) (*podeval.Evaluator, serve.Task, error) {
	identity := cmp.Or(services.PodIdentity, frame.Identity)
	conns := podconn.New(podconn.Config{
		Idle: cfg.Pod.IdleTimeout, Max: cfg.Pod.MaxIdleConnections,
		MaxMessageBytes: cfg.MaxMessageBytes, Identity: identity, Telemetry: frame.Telemetry,
	})
	pod, err := podeval.New(podeval.Config{
		Leases: services.PodManager, Conns: conns, MaxRetries: cfg.Pod.MaxRetries,
		ConnectTimeout: cfg.Pod.ConnectTimeout, Telemetry: frame.Telemetry,
	})
	return pod, conns.Run, err
}

// pools returns the service that shows the pools of m, so that users need to know
// one address only.
func pools(cfg Config, m lease.Manager, q queries, frame program.Frame) rpcserve.Service {
	return rpcserve.Service{
		Name: podmanagerv1connect.PodManagerServiceName, Streams: true,
		MaxRequestBytes: lease.MaxRequestBytes, MaxResponseBytes: cfg.MaxMessageBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			handler := lease.Handler(readOnly{m}, frame.Health.Stopping())
			path, served := podmanagerv1connect.NewPodManagerServiceHandler(handler, options...)
			return path, q.bounded(served)
		},
	}
}

// readOnly shows pools and lends nothing.
type readOnly struct{ lease.Manager }

// Lease rejects all: callers of the gateway may have functions evaluated, but may not call
// pods.
func (readOnly) Lease(context.Context, *lease.Open, func(*lease.Waiting)) (lease.Lease, error) {
	return nil, fault.New(fault.Denied, "the gateway lends no pods: call EvaluateFunction, or ask the pod-manager itself")
}
