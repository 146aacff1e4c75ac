// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// Sizes of HTTP/2 flow-control windows, in bytes. They are larger than messages, so that the transfer of a resource
// list of several megabytes does not pause for acknowledgements.
const (
	streamWindow = 8 << 20
	connWindow   = 16 << 20
)

// maxHeaders limits the headers and trailers of an answer, in bytes. The trailers contain the error message of a failed
// call. gRPC may encode each byte of the message as three bytes. Therefore the trailers need up to 60 KiB.
const maxHeaders = 128 << 10

func dialOptions(cfg Config) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("function-runner-gateway"),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(cfg.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(cfg.MaxMessageBytes), grpc.ForceCodecV2(newCodec())),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithIdleTimeout(0), // the pool closes idle connections
		// Retry soon: a node refuses connections to a new Service only for some milliseconds, until it has installed the
		// Service's rules.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 20 * time.Millisecond, Multiplier: 1.3, Jitter: 0.2,
				MaxDelay: 500 * time.Millisecond,
			},
			MinConnectTimeout: 10 * time.Second,
		}),
		// Send pings, because the gateway would otherwise wait for the answer of a failed node until the evaluation's
		// deadline.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(cfg.Telemetry.Tracers),
			otelgrpc.WithMeterProvider(cfg.Telemetry.Meters),
			otelgrpc.WithPropagators(cfg.Telemetry.Propagator),
		)),
	}
}
