// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/serve"
)

// Caller returns the address of the caller of ctx's call, without the port: all connections of a pod share it. It is
// empty outside of a call.
func Caller(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	return serve.Peer(call.Peer().Addr)
}
