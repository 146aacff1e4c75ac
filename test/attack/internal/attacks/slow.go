// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// Durations of attacks that do not end on their own. The option -short of the test selects the duration short.
const (
	short = 5 * time.Second
	long  = 30 * time.Second
)

// announced is the message size in bytes that slow uploads declare. It is the largest size that programs accept.
const announced = 6<<20 - 5

// The pace of a slow upload is 4 KiB every 5 s. The server requires slightly less, 16 KiB in 30 s.
const (
	uploadPart  = 4 << 10
	uploadPause = 5 * time.Second
)

// slowUploads begins 22 large requests on a single connection, and sends their bodies very slowly.
var slowUploads = Attack{
	Name: "22 slow uploads", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.uploadSlowly(ctx, 1, 22) },
}

// manyUploads begins a large request on each of 200 connections, and sends the bodies very slowly.
var manyUploads = Attack{
	Name: "200 slow connections", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error { return t.uploadSlowly(ctx, 200, 1) },
}

// uploadSlowly opens the given number of connections, and sends the given number of slow uploads on each.
func (t *Target) uploadSlowly(ctx context.Context, connections, streams int) error {
	ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
	defer cancel()
	return runAll(connections, func(int) error {
		// Ignore errors: the server may refuse further connections, or close a connection with too many requests.
		if conn, err := wire.Open(ctx, t.Address, 65535); err == nil {
			if ids, err := announceBodies(conn, streams); err == nil {
				dripBodies(ctx, conn, ids)
			}
		}
		return nil
	})
}

// announceBodies begins a large request on each of the given number of streams and returns the IDs of the streams.
func announceBodies(conn *wire.Conn, streams int) (ids []uint32, err error) {
	for range streams {
		id, err := conn.Request(evaluatePath)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		_ = conn.Send(id, wire.Envelope(nil, false, announced), false)
	}
	return ids, nil
}

// dripBodies sends a small part of the body on each stream at intervals of uploadPause until ctx ends.
func dripBodies(ctx context.Context, conn *wire.Conn, ids []uint32) {
	ticker := time.NewTicker(uploadPause)
	defer ticker.Stop()
	for {
		for _, id := range ids {
			_ = conn.Send(id, make([]byte, uploadPart), false)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
