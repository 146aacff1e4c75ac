// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"
	"runtime"

	"golang.org/x/sync/semaphore"
)

// Memory of concurrent full decodes, in bytes. Small decodes use separate memory, so that they never queue behind
// large decodes.
const (
	maxDecoding      = 192 << 20
	maxSmallDecoding = 64 << 20
	smallDecode      = 4 << 20
)

// Estimates of the memory of a full decode: a node per value, and copies per byte.
const (
	memoryPerValue = 200
	memoryPerByte  = 4
)

// decodeCost returns the memory to decode the given numbers of bytes and values.
func decodeCost(bytes, values int) int64 {
	return memoryPerByte*int64(bytes) + memoryPerValue*int64(values)
}

// decoding bounds the full decodes of the process.
var decoding = newTurns()

// largeScan is the number of bytes whose scan lasts about a millisecond.
const largeScan = 256 << 10

// turns limits the memory of concurrent decodes, first come first served, and the processors of large decodes: a
// processor is reserved for all other requests. Scans use separate turns, because they last milliseconds, and a decode
// may last seconds.
type turns struct{ small, large, processors, scans *semaphore.Weighted }

func newTurns() turns {
	most := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return turns{
		small: semaphore.NewWeighted(maxSmallDecoding), large: semaphore.NewWeighted(maxDecoding),
		processors: semaphore.NewWeighted(most), scans: semaphore.NewWeighted(most),
	}
}

// acquireScan waits until a scan of that size may run. The caller must call release. If ctx is canceled, it returns its
// error.
//
// Go runs each goroutine for 10 ms before the next: with twenty large concurrent scans, a small request would wait for
// all of them at each of its steps.
func (t turns) acquireScan(ctx context.Context, bytes int) (release func(), err error) {
	if bytes < largeScan {
		return func() {}, nil
	}
	return acquireFrom(ctx, t.scans, 1)
}

// acquireDecode waits until a decode of that cost may run. The caller must call release. A decode that exceeds the
// memory of all turns runs as the only large decode. If ctx is canceled, acquire returns its error.
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

// acquireFrom acquires n of a semaphore, and returns the function that releases them.
func acquireFrom(ctx context.Context, from *semaphore.Weighted, n int64) (release func(), err error) {
	if err := from.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { from.Release(n) }, nil
}
