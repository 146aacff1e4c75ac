// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"
	"runtime"

	"golang.org/x/sync/semaphore"
)

// Limits of the memory of concurrent full decodes, in bytes. A decode that needs at most smallDecode is small. All
// small decodes together may use maxSmallDecoding, and all other decodes maxDecoding, so that small decodes never
// wait for large decodes.
const (
	maxDecoding      = 192 << 20
	maxSmallDecoding = 64 << 20
	smallDecode      = 4 << 20
)

// Estimates of the memory of a full decode, in bytes: per value for its node, and per byte for several copies.
const (
	memoryPerValue = 200
	memoryPerByte  = 4
)

// decodeCost estimates the memory, in bytes, to decode a list with the given numbers of bytes and values.
func decodeCost(bytes, values int) int64 {
	return memoryPerByte*int64(bytes) + memoryPerValue*int64(values)
}

// decoding limits the concurrent checks of resource lists in this process: fast scans, and full decodes.
var decoding = newTurns()

// largeScan is the size of a list, in bytes, from which its scan must wait for other scans. A scan of so many bytes
// lasts about a millisecond.
const largeScan = 256 << 10

// turns limits the concurrent scans and full decodes of lists. Decodes that would exceed the memory limits wait in
// the order of their arrival. Large decodes leave at least one processor for other requests. Scans are limited
// separately, because a scan lasts milliseconds and would wait seconds for a decode.
type turns struct{ small, large, processors, scans *semaphore.Weighted }

func newTurns() turns {
	most := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return turns{
		small: semaphore.NewWeighted(maxSmallDecoding), large: semaphore.NewWeighted(maxDecoding),
		processors: semaphore.NewWeighted(most), scans: semaphore.NewWeighted(most),
	}
}

// acquireScan waits until a scan of the given number of bytes may run. The caller must call release. If ctx is
// canceled, acquireScan returns the error of ctx. The limit keeps small requests fast: Go runs a goroutine for up
// to 10 ms before the next, so that a small request would often wait for each of many concurrent large scans.
func (t turns) acquireScan(ctx context.Context, bytes int) (release func(), err error) {
	if bytes < largeScan {
		return func() {}, nil
	}
	return acquireFrom(ctx, t.scans, 1)
}

// acquireDecode waits until a full decode that needs cost bytes of memory may run. The caller must call release. A
// decode that needs more than maxDecoding runs while no other large decode runs. If ctx is canceled, acquireDecode
// returns the error of ctx.
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
