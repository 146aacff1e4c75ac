// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Bounds of what it costs to return memory: a collection at most every lookEvery, and only
// for worthReturning bytes or more.
const (
	lookEvery      = 10 * time.Second
	worthReturning = 32 << 20
)

// returnMemory returns memory to the system after bursts, until ctx ends. Go itself does
// that after its next collection: in a program with little to do, that is minutes later.
func returnMemory(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	heap := newBurst(readUsage())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if heap.over(readUsage()) {
			debug.FreeOSMemory()
			heap.returned(readUsage())
		}
	}
}

// usage is what Go's runtime reports of its memory.
type usage struct {
	mapped      uint64 // bytes that the process has from the system
	collections uint64 // that the runtime started itself
}

func readUsage() usage {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/automatic:gc-cycles"},
	}
	metrics.Read(samples)
	return usage{
		mapped:      samples[0].Value.Uint64() - samples[1].Value.Uint64(),
		collections: samples[2].Value.Uint64(),
	}
}

// retryAfter is after how many quiet looks memory is returned once more to a program that had
// much in use when it was returned before: it may have become garbage, which only a collection
// finds out.
const retryAfter = 2

// burst follows the use of memory.
type burst struct {
	last  usage
	start uint64 // bytes at the start of the program
	least uint64 // bytes that were enough since memory was returned
	quiet int    // looks since the runtime has collected, or memory was returned
}

func newBurst(now usage) *burst { return &burst{last: now, start: now.mapped, least: now.mapped} }

// over reports whether a burst is over, and has left enough memory to be worth returning.
// As long as the runtime collects, there is load, and what is free will be used again.
func (b *burst) over(now usage) bool {
	b.quiet++
	if now.collections != b.last.collections {
		b.quiet = 0
	}
	b.last, b.least = now, min(b.least, now.mapped)
	enough := b.least
	if b.quiet >= retryAfter {
		enough = b.start
	}
	return b.quiet > 0 && now.mapped >= enough+worthReturning
}

// returned takes what is still mapped as what the program needs for now.
func (b *burst) returned(now usage) { b.last, b.least, b.quiet = now, now.mapped, 0 }
