// SPDX-License-Identifier: Apache-2.0

//go:build !race

package pool_test

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	simSeeds = flag.Uint64("sim.seeds", 200, "how many simulations to run")
	simSeed  = flag.Uint64("sim.seed", 0, "the first simulation to run")
)

// TestSimulation plays through what callers, pods, Kubernetes and other replicas may
// do to a machine, and shows the shortest script found by which it breaks a promise. Each script has its own machine,
// so make unit runs it without the race detector only.
func TestSimulation(t *testing.T) {
	var (
		next   atomic.Uint64
		wait   sync.WaitGroup
		failed atomic.Bool
	)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for !failed.Load() {
				n := next.Add(1) - 1
				if n >= *simSeeds {
					return
				}
				s := generate(*simSeed + n)
				if err := s.play(nil); err != nil && !failed.Swap(true) {
					s = shrink(s)
					var trace strings.Builder
					err = s.play(&trace)
					t.Errorf("%v\n\nby the script\n\n%s\nwhich goes like this\n\n%s", err, s, trace.String())
				}
			}
		})
	}
	wait.Wait()
}
