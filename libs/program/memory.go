package program

import (
	"os"
	"runtime/debug"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// limitMemory has Go's collector work harder before the container at root has no memory
// left: at five eighths of what it may have, since there are also function processes and
// what the collector does not know of. Who sets GOMEMLIMIT knows better.
func limitMemory(root string) {
	if os.Getenv("GOMEMLIMIT") != "" { //nolint:forbidigo // a variable of Go's own
		return
	}
	if limit, ok := cgroup.MemoryLimit(root); ok {
		debug.SetMemoryLimit(limit / 8 * 5)
	}
}
