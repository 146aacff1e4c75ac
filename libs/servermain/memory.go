// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// limitMemory sets the memory limit of Go's garbage collector to five eighths of the container's memory limit. The
// rest is for function processes and for memory outside of Go's heap. If GOMEMLIMIT is set, limitMemory does nothing.
func limitMemory(root string) {
	if os.Getenv("GOMEMLIMIT") != "" { //nolint:forbidigo // a variable of Go's runtime
		return
	}
	if limit, ok := cgroup.MemoryLimit(root); ok {
		debug.SetMemoryLimit(limit / 8 * 5)
	}
}

// Conditions for returning unused memory to the operating system. An idle program returns memory every returnInterval
// if it occupies at least worthReturning bytes more than at its start. Less memory is not worthwhile, because returning
// it requires a garbage collection of some milliseconds.
const (
	returnInterval = 15 * time.Second
	worthReturning = 64 << 20
)

// returnMemory returns an idle program's unused memory to the operating system, until ctx is canceled. Go's runtime
// would return the memory only after its next garbage collection, minutes after the last request. Until then, resource
// lists may occupy hundreds of megabytes.
func returnMemory(ctx context.Context) error {
	ticker := time.NewTicker(returnInterval)
	defer ticker.Stop()
	start := readUsage()
	for last := start; ; last = readUsage() {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if now := readUsage(); now.idleSince(last) && now.mapped >= start.mapped+worthReturning {
			debug.FreeOSMemory()
		}
	}
}

// usage is the memory use of this program according to Go's runtime.
type usage struct {
	mapped      uint64 // bytes of memory that the program occupies
	collections uint64 // number of garbage collections that the runtime started itself
}

// idleSince reports whether the program was idle since an earlier measurement, that is, whether the runtime started no
// garbage collection. A busy program should not return memory, because it would soon need the memory again.
func (u usage) idleSince(last usage) bool { return u.collections == last.collections }

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
