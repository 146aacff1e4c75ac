// SPDX-License-Identifier: Apache-2.0

package podconn

import (
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// Flow-control windows of gRPC. A whole message fits into each window, so that a resource list of several megabytes
// does not wait for acknowledgements.
const (
	streamWindow = 8 << 20
	connWindow   = 16 << 20
)

// maxHeaders limits the headers and trailers of an answer, in bytes. The status of a wrapper server, with its
// details, needs up to 60 KiB, because the encoding of its message may need three bytes per byte.
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
		// The first delay is short, because a new Service refuses connections only for some milliseconds, until the
		// node has its rules.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 20 * time.Millisecond, Multiplier: 1.3, Jitter: 0.2,
				MaxDelay: 500 * time.Millisecond,
			},
			MinConnectTimeout: 10 * time.Second,
		}),
		// During an evaluation, pings detect that the pod's node has failed.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(cfg.Telemetry.Tracers),
			otelgrpc.WithMeterProvider(cfg.Telemetry.Meters),
			otelgrpc.WithPropagators(cfg.Telemetry.Propagator),
		)),
	}
}
