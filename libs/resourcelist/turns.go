// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"
	"runtime"

	"golang.org/x/sync/semaphore"
)

// Memory that full decodes may take at a time, in bytes. Small decodes have a part of
// their own, so that they never queue behind large ones.
const (
	maxDecoding      = 192 << 20
	maxSmallDecoding = 64 << 20
	smallDecode      = 4 << 20
)

// Estimates of the memory that a full decode takes: for each value a node, for each byte
// its copies.
const (
	memoryPerValue = 200
	memoryPerByte  = 4
)

// cost returns how much memory it takes to decode so many bytes with so many values.
func cost(bytes, values int) int64 {
	return memoryPerByte*int64(bytes) + memoryPerValue*int64(values)
}

// decoding bounds the full decodes of the process.
var decoding = newTurns()

// turns bounds the memory of decodes that run at the same time, first come first served,
// and the processors of large ones: the last is for all other requests.
type turns struct{ small, large, processors *semaphore.Weighted }

func newTurns() turns {
	return turns{
		small: semaphore.NewWeighted(maxSmallDecoding), large: semaphore.NewWeighted(maxDecoding),
		processors: semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)-1))),
	}
}

// acquire waits until a decode of that cost may run, and returns what ends its turn. One
// that costs more than all turns together runs alone among the large ones. The error is
// that of ctx.
func (t turns) acquire(ctx context.Context, cost int64) (release func(), err error) {
	if cost <= smallDecode {
		return take(ctx, t.small, cost)
	}
	endTurn, err := take(ctx, t.processors, 1)
	if err != nil {
		return nil, err
	}
	free, err := take(ctx, t.large, min(cost, maxDecoding))
	if err != nil {
		endTurn()
		return nil, err
	}
	return func() { free(); endTurn() }, nil
}

// take waits for n of a semaphore, and returns what gives them back.
func take(ctx context.Context, from *semaphore.Weighted, n int64) (release func(), err error) {
	if err := from.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { from.Release(n) }, nil
}
