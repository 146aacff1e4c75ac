// SPDX-License-Identifier: Apache-2.0

// Package rpcserve creates the HTTP handler for the RPC services of a port. All services support gRPC, gRPC-Web and
// Connect. The handler adds health checks, reflection, telemetry, and the conversion of errors to status codes.
package rpcserve

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Service configures an RPC service of a port.
type Service struct {
	// Name is the full name of the service, with its package, such as "grpc.health.v1.Health".
	Name string
	// Handler is the generated constructor of the service's HTTP handler. The constructor also returns the path prefix of
	// the service's methods.
	Handler func(options ...connect.HandlerOption) (path string, handler http.Handler)
	// Streams must be true if the service has a streaming method. The server then accepts that a client sends nothing for
	// a long time, because a stream may be idle. Otherwise, clients must send at a minimum rate.
	Streams bool
	// MaxRequestBytes and MaxResponseBytes limit the size of each message. Both are required. A call with a larger
	// message fails with ResourceExhausted.
	MaxRequestBytes, MaxResponseBytes int
}

// Config configures a port.
type Config struct {
	Telemetry *telemetry.Telemetry
	Health    *serve.Health
	// Access authorizes the requests to the port, except health checks. A nil Access admits all requests. Port is the
	// port's name in metrics and in log lines about rejected requests.
	Access Access
	Port   string
	// Hosts contains the host names that browsers may use to call the port.
	Hosts Hosts
}

// healthBytes is the maximum size of a health check's messages, which contain at most the name of a service.
const healthBytes = 4 << 10

// NewHandler returns the HTTP handler for the services of a port. It panics if a service does not limit the size of its
// messages.
func NewHandler(cfg Config, services ...Service) *Handler {
	options := []connect.HandlerOption{
		connect.WithInterceptors(cfg.Telemetry.Interceptor(), rpcfault.Interceptor()),
		connect.WithRecover(recoverPanic(cfg.Telemetry.Log)),
	}
	h := &Handler{
		telemetry: cfg.Telemetry, hosts: cfg.Hosts, errors: connect.NewErrorWriter(), services: map[string]mount{},
	}
	names := []string{grpchealth.HealthV1ServiceName}
	for _, s := range services {
		h.add(mount{
			name: s.Name, requestBytes: s.MaxRequestBytes, responseBytes: s.MaxResponseBytes, idles: s.Streams, options: options,
		}, s.Handler)
		names = append(names, s.Name)
	}
	// Health checks are not traced, because they are too frequent.
	health := mount{name: grpchealth.HealthV1ServiceName, requestBytes: healthBytes, responseBytes: healthBytes}
	h.add(health, func(options ...connect.HandlerOption) (string, http.Handler) {
		return grpchealth.NewHandler(cfg.Health.Checker(names...), options...)
	})
	h.addReflection(names)
	return h.Restrict(cfg.Port, cfg.Access)
}

// recoverPanic returns a function that Connect calls when a handler panics. It logs the stack and converts the
// panic to an error, so that only this request fails.
func recoverPanic(log *slog.Logger) func(context.Context, connect.Spec, http.Header, any) error {
	return func(ctx context.Context, spec connect.Spec, _ http.Header, p any) error {
		log.ErrorContext(ctx, "handler panicked", "procedure", spec.Procedure, "panic", p, "stack", string(debug.Stack()))
		return rpcfault.ToConnect(fault.New(fault.Internal, "defect in %s: the server's log has the details", spec.Procedure))
	}
}
