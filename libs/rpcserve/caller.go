// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"context"
	"net"

	"connectrpc.com/connect"
)

// Caller returns who makes the call that ctx belongs to, as far as that is known: the
// address without the port, which all connections of one pod share. It is empty outside
// of a call.
func Caller(ctx context.Context) string {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return ""
	}
	host, _, err := net.SplitHostPort(call.Peer().Addr)
	if err != nil {
		return call.Peer().Addr
	}
	return host
}
