// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"runtime/debug"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// limitMemory makes Go's collector work harder before the container at root runs out of memory: at
// five eighths of its limit, since function processes and memory outside of Go's heap need the
// rest. GOMEMLIMIT takes precedence.
func limitMemory(root string) {
	if os.Getenv("GOMEMLIMIT") != "" { //nolint:forbidigo // a variable of Go's own
		return
	}
	if limit, ok := cgroup.MemoryLimit(root); ok {
		debug.SetMemoryLimit(limit / 8 * 5)
	}
}
