// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// How long attacks last that would last for ever.
const (
	short = 5 * time.Second
	long  = 30 * time.Second
)

// announced is the announced size of the uploads: the largest accepted size.
const announced = 6<<20 - 5

// The pace of an upload: just enough for the server's least pace, of 16 KiB in 30 s.
const (
	uploadPart  = 4 << 10
	uploadPause = 5 * time.Second
)

// slowUploads begins 22 large requests on a single connection and hardly sends their bodies.
var slowUploads = Attack{
	Name: "22 slow uploads", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error { return t.uploadSlowly(ctx, 1, 22) },
}

// manyUploads does the same with many connections and a single request on each.
var manyUploads = Attack{
	Name: "200 slow connections", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error { return t.uploadSlowly(ctx, 200, 1) },
}

// uploadSlowly has so many connections with so many slow uploads each.
func (t *Target) uploadSlowly(ctx context.Context, connections, streams int) error {
	ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
	defer cancel()
	return runAll(connections, func(int) error {
		if conn, err := wire.Open(ctx, t.Address, 65535); err == nil { // an error means that the server accepts no more
			if ids, err := announceBodies(conn, streams); err == nil { // an error means that the server rejected the connection
				dripBodies(ctx, conn, ids)
			}
		}
		return nil
	})
}

// announceBodies begins so many large requests, and returns their streams.
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

// dripBodies sends a little on each stream from time to time, until ctx ends.
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
