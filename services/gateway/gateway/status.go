// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"os"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

const (
	// maxStatusRequestBytes is more than a valid request about the status has.
	maxStatusRequestBytes = 4 << 10
	// maxStatusResponseBytes is more than the history of a gateway has.
	maxStatusResponseBytes = 8 << 20
)

// statusService returns the service that shows what this replica does.
func statusService(s *status.Service, q queries) rpcserve.Service {
	return rpcserve.Service{
		Name:            gatewayv1connect.StatusServiceName,
		MaxRequestBytes: maxStatusRequestBytes, MaxResponseBytes: maxStatusResponseBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			path, handler := gatewayv1connect.NewStatusServiceHandler(s, options...)
			return path, q.bounded(handler)
		},
	}
}

// maxStatusConnections bounds the connections of browsers.
const maxStatusConnections = 32

// statusPage returns the port of the status page. Without a pod-manager it shows no pods.
func statusPage(cfg Config, s *status.Service, manager lease.Manager, frame program.Frame) serve.Endpoint {
	var pools status.Pools
	if manager != nil {
		pools = manager
	}
	page := s.Page(pools, frame.Telemetry.Log, cfg.StatusHosts...)
	return serve.Endpoint{
		Name: "status", Address: cfg.StatusAddress, Handler: newQueries().bounded(page),
		MaxConnections: maxStatusConnections, MaxConnectionsPerPeer: maxStatusConnections,
	}
}

// hostname returns the name of this replica; empty if the system does not tell.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
