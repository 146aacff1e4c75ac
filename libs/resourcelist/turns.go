// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"
	"runtime"

	"golang.org/x/sync/semaphore"
)

// Limits of the memory of concurrent full decodes, in bytes: for large decodes, and for small decodes, which cost up
// to smallDecode. Small decodes have their own limit, so that they never queue behind large decodes.
const (
	maxDecoding      = 192 << 20
	maxSmallDecoding = 64 << 20
	smallDecode      = 4 << 20
)

// Estimates of the memory of a full decode: bytes for the node of each value, and for the copies of each byte.
const (
	memoryPerValue = 200
	memoryPerByte  = 4
)

// decodeCost estimates the memory for decoding a list with the given numbers of bytes and values.
func decodeCost(bytes, values int) int64 {
	return memoryPerByte*int64(bytes) + memoryPerValue*int64(values)
}

// decoding limits the scans and full decodes of this process.
var decoding = newTurns()

// largeScan is the size in bytes from which a scan must wait for a turn. The scan of so many bytes lasts about a
// millisecond.
const largeScan = 256 << 10

// turns limits the memory of concurrent decodes, in the order of their arrival. It also limits the processors that
// large decodes use, so that one processor is left for other requests. Scans have their own turns, because a scan
// lasts milliseconds and a decode may last seconds.
type turns struct{ small, large, processors, scans *semaphore.Weighted }

func newTurns() turns {
	most := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return turns{
		small: semaphore.NewWeighted(maxSmallDecoding), large: semaphore.NewWeighted(maxDecoding),
		processors: semaphore.NewWeighted(most), scans: semaphore.NewWeighted(most),
	}
}

// acquireScan waits until a scan of the given number of bytes may run. The caller must call release. If ctx is
// canceled, acquireScan returns the error of ctx.
//
// Go runs each goroutine for 10 ms before the next: with twenty large concurrent scans, a small request would wait for
// all of them at each of its steps.
func (t turns) acquireScan(ctx context.Context, bytes int) (release func(), err error) {
	if bytes < largeScan {
		return func() {}, nil
	}
	return acquireFrom(ctx, t.scans, 1)
}

// acquireDecode waits until a decode of the given cost may run. The caller must call release. A decode that costs
// more than maxDecoding runs while no other large decode does. If ctx is canceled, acquireDecode returns the error of
// ctx.
func (t turns) acquireDecode(ctx context.Context, cost int64) (release func(), err error) {
	if cost <= smallDecode {
		return acquireFrom(ctx, t.small, cost)
	}
	endTurn, err := acquireFrom(ctx, t.processors, 1)
	if err != nil {
		return nil, err
	}
	free, err := acquireFrom(ctx, t.large, min(cost, maxDecoding))
	if err != nil {
		endTurn()
		return nil, err
	}
	return func() { free(); endTurn() }, nil
}

// acquireFrom acquires n units of a semaphore. It returns the function that releases them.
func acquireFrom(ctx context.Context, from *semaphore.Weighted, n int64) (release func(), err error) {
	if err := from.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { from.Release(n) }, nil
}
