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

// largeScan is how many bytes take about a millisecond to scan.
const largeScan = 256 << 10

// turns bounds the memory of decodes that run at the same time, first come first served,
// and the processors of large ones: the last is for all other requests. Scans have turns of
// their own, since they take milliseconds, and a decode may take seconds.
type turns struct{ small, large, processors, scans *semaphore.Weighted }

func newTurns() turns {
	most := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return turns{
		small: semaphore.NewWeighted(maxSmallDecoding), large: semaphore.NewWeighted(maxDecoding),
		processors: semaphore.NewWeighted(most), scans: semaphore.NewWeighted(most),
	}
}

// scan waits until so many bytes may be scanned, and returns what ends the turn. The error
// is that of ctx.
//
// Go runs each goroutine for 10 ms before the next one: with twenty large scans at a time, a
// small request waits for all of them at each of its steps.
func (t turns) scan(ctx context.Context, bytes int) (release func(), err error) {
	if bytes < largeScan {
		return func() {}, nil
	}
	return take(ctx, t.scans, 1)
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
