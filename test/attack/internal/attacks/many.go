// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// manyStreams opens 5,000 streams on a single connection, and sends no messages.
var manyStreams = Attack{
	Name: "5,000 streams", Programs: every,
	Run: func(ctx context.Context, t *Target) error {
		ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
		defer cancel()
		conn, err := wire.Open(ctx, t.Address, 0)
		if err != nil {
			return err
		}
		for range 5000 {
			if _, err := conn.Request(reflectionPath); err != nil {
				return nil // the server closed the connection
			}
		}
		<-ctx.Done()
		return nil
	},
}

// manyConnections opens 3,000 connections, and begins a request on every second connection without completing it.
var manyConnections = Attack{
	Name: "3,000 connections", Programs: every,
	Run: func(ctx context.Context, t *Target) error {
		ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
		defer cancel()
		for i := range 3000 {
			conn, err := wire.Open(ctx, t.Address, 0)
			if err != nil {
				break // the server accepts no more connections
			}
			if i%2 == 0 {
				_, _ = conn.Request(evaluatePath)
			}
		}
		<-ctx.Done()
		return nil
	},
}
