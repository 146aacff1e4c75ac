// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"net"
)

// loopback evaluates a function that tries to connect to a port on the server's loopback interface.
var loopback = Attack{
	Name: "connect to loopback", Programs: runners,
	Run: func(ctx context.Context, t *Target) error {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer func() { _ = listener.Close() }()
		return t.attemptBreach(ctx, List("connect", listener.Addr().String(), 0))
	},
}
