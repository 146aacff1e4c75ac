// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"connectrpc.com/connect"
)

const (
	traceBytes = 16
	spanBytes  = 8
)

// traceKey is the key of the trace id in a context.
type traceKey struct{}

// Traced returns a context that starts a new trace for the next evaluation, and the id of the trace.
func Traced(ctx context.Context) (traced context.Context, id string) {
	id = randomHex(traceBytes)
	return context.WithValue(ctx, traceKey{}, id), id
}

// withTraceparent returns a context for an RPC. If ctx contains a trace id, the request gets the header Traceparent
// of W3C Trace Context, so that the gateway records the evaluation under this id.
func withTraceparent(ctx context.Context) context.Context {
	id, ok := ctx.Value(traceKey{}).(string)
	if !ok {
		return ctx
	}
	ctx, call := connect.NewClientContext(ctx)
	call.RequestHeader().Set("Traceparent", fmt.Sprintf("00-%s-%s-01", id, randomHex(spanBytes)))
	return ctx
}

func randomHex(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}
