// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Traced returns a context that starts a new trace for the next evaluation, and the id of the trace.
func Traced(ctx context.Context) (traced context.Context, id string) {
	config := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled}
	_, _ = rand.Read(config.TraceID[:]) // never fails
	_, _ = rand.Read(config.SpanID[:])
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(config)), config.TraceID.String()
}

// withTraceparent returns a context for an RPC in the trace of ctx. The request gets the header Traceparent of W3C
// Trace Context, so that the gateway records the evaluation under the trace's id.
func withTraceparent(ctx context.Context) context.Context {
	ctx, call := connect.NewClientContext(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(call.RequestHeader()))
	return ctx
}
