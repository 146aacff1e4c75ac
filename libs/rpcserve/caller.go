// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/serve"
)

// Caller returns who makes the call that ctx belongs to, as far as that is known: the
// address without the port, which all connections of one pod share. It is empty outside
// of a call.
func Caller(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	return serve.Peer(call.Peer().Addr)
}
