// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// Durations of attacks that continue until they are stopped. Tests with the option -short use short.
const (
	short = 5 * time.Second
	long  = 30 * time.Second
)

// announced is the message size in bytes that slow uploads announce. It is the largest size that programs accept.
const announced = 6<<20 - 5

// The pace of a slow upload, 4 KiB every 5 s. This is slightly faster than the server's minimum of 16 KiB in 30 s.
const (
	uploadPart  = 4 << 10
	uploadPause = 5 * time.Second
)

// slowUploads sends 22 large requests very slowly on a single connection.
var slowUploads = Attack{
	Name: "22 slow uploads", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.uploadSlowly(ctx, 1, 22) },
}

// manyUploads sends a large request very slowly on each of 200 connections.
var manyUploads = Attack{
	Name: "200 slow connections", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error { return t.uploadSlowly(ctx, 200, 1) },
}

// uploadSlowly opens several connections, and sends a large request very slowly on each of several streams.
func (t *Target) uploadSlowly(ctx context.Context, connections, streams int) error {
	ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
	defer cancel()
	return runAll(connections, func(int) error {
		// Ignore errors, because the server may refuse connections, or close a connection with too many requests.
		if conn, err := wire.Open(ctx, t.Address, 65535); err == nil {
			if ids, err := announceBodies(conn, streams); err == nil {
				dripBodies(ctx, conn, ids)
			}
		}
		return nil
	})
}

// announceBodies begins a large request on each of several new streams, and returns the streams' IDs.
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

// dripBodies sends a small part of the body on each stream, at intervals of uploadPause, until ctx ends.
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
