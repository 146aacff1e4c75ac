// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/serve"
)

// Caller returns the IP address of the client that made the current call. It omits the port, so that all
// connections of a pod count as the same caller. Without a current call in ctx, it returns an empty string.
func Caller(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	return serve.Peer(call.Peer().Addr)
}
