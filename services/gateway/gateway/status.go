// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"os"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

const (
	// maxStatusRequestBytes limits requests for the gateway's status. All valid requests are smaller.
	maxStatusRequestBytes = 4 << 10
	// maxStatusResponseBytes limits responses about the gateway's status. A list of all evaluations is smaller.
	maxStatusResponseBytes = 8 << 20
)

// statusService returns the RPC service that shows the current and recent evaluations of this replica.
func statusService(s *status.Service, q *queries) rpcserve.Service {
	return rpcserve.Service{
		Name:            gatewayv1connect.StatusServiceName,
		MaxRequestBytes: maxStatusRequestBytes, MaxResponseBytes: maxStatusResponseBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			path, handler := gatewayv1connect.NewStatusServiceHandler(s, options...)
			return path, q.limitQueries(handler)
		},
	}
}

// maxStatusConnections is the maximum number of concurrent connections to the status page.
const maxStatusConnections = 32

// statusPage returns the port of the status page. If there is no pod-manager, the page shows no pods.
func statusPage(cfg Config, s *status.Service, manager lease.Manager, frame servermain.Frame) serve.Endpoint {
	var pools status.Pools
	if manager != nil {
		pools = manager
	}
	page := s.Page(pools, frame.Telemetry.Log, cfg.StatusHosts...)
	return serve.Endpoint{
		Name: "status", Address: cfg.StatusAddress, Handler: newQueries().limitQueries(page),
		MaxConnections: maxStatusConnections, MaxConnectionsPerPeer: maxStatusConnections,
	}
}

// hostname returns the name of this replica for the status page. It is empty if the operating system returns an error.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
