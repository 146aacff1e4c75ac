// Package rpcserve puts RPC services on one port: with the gRPC, gRPC-Web and
// Connect protocols, health checks, reflection, telemetry, and the mapping of
// errors to codes, the same for all services.
package rpcserve

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Service is one RPC service.
type Service struct {
	// Name is its name with package.
	Name string
	// Handler is the generated function that makes its handler.
	Handler func(options ...connect.HandlerOption) (path string, handler http.Handler)
	// Streams says whether one of its methods is a stream.
	Streams bool
}

// Config is what the services of a port share.
type Config struct {
	Telemetry *telemetry.Telemetry
	Health    *serve.Health
	// MaxMessageBytes bounds each message, read or sent, after decompression.
	// Beyond it the answer is ResourceExhausted.
	MaxMessageBytes int
}

// NewHandler returns the handler of a port with the given services.
func NewHandler(cfg Config, services ...Service) (http.Handler, error) {
	tracing, err := cfg.Telemetry.Interceptor()
	if err != nil {
		return nil, fmt.Errorf("set up tracing of RPCs: %w", err)
	}
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(cfg.MaxMessageBytes),
		connect.WithSendMaxBytes(cfg.MaxMessageBytes),
		connect.WithInterceptors(tracing, rpcfault.Interceptor()),
		// Requests may be compressed; responses never are. Callers are near, and
		// compressing megabytes takes longer than sending them.
		connect.WithCompressMinBytes(math.MaxInt),
		connect.WithRecover(recovered(cfg.Telemetry.Log)),
	}
	mux := http.NewServeMux()
	names := []string{grpchealth.HealthV1ServiceName}
	for _, s := range services {
		path, handler := s.Handler(options...)
		if !s.Streams {
			handler = paced(atOnce(handler))
		}
		mux.Handle(path, handler)
		names = append(names, s.Name)
	}
	// Health checks come every few seconds: tracing them would drown the rest.
	path, health := grpchealth.NewHandler(cfg.Health.Checker(names...))
	mux.Handle(path, paced(health))
	reflector := grpcreflect.NewStaticReflector(names...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector))
	return mux, nil
}

// atOnce has responses sent when they are complete. Connect flushes a response after
// its message and again after its trailers if it can, which wakes the client twice.
func atOnce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(struct{ http.ResponseWriter }{w}, r) // without http.Flusher
	})
}

// recovered answers a request whose handler panicked: one request fails, the
// server goes on, and the log has the stack.
func recovered(log *slog.Logger) func(context.Context, connect.Spec, http.Header, any) error {
	return func(ctx context.Context, spec connect.Spec, _ http.Header, p any) error {
		log.ErrorContext(ctx, "handler panicked", "procedure", spec.Procedure, "panic", p, "stack", string(debug.Stack()))
		return rpcfault.ToConnect(fault.New(fault.Internal, "defect in %s: the server's log has the details", spec.Procedure))
	}
}
