// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"os"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

const (
	// maxStatusRequestBytes is more than a valid request about the status has.
	maxStatusRequestBytes = 4 << 10
	// maxStatusResponseBytes is more than the history of a gateway has.
	maxStatusResponseBytes = 8 << 20
)

// statusService returns the service that shows what this replica does.
func statusService(s *status.Service) rpcserve.Service {
	return rpcserve.Service{
		Name:            gatewayv1connect.StatusServiceName,
		MaxRequestBytes: maxStatusRequestBytes, MaxResponseBytes: maxStatusResponseBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return gatewayv1connect.NewStatusServiceHandler(s, options...)
		},
	}
}

// hostname returns the name of this replica; empty if the system does not tell.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
