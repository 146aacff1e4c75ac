// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var (
	duration    = flag.Duration("chaos.time", time.Minute, "how long things break")
	evaluations = flag.Int64("chaos.evaluations", 3000, "how many evaluations there are before anything breaks")
	seed        = flag.Uint64("chaos.seed", uint64(time.Now().Unix()), "selects what breaks, and when")
)

const (
	// callers is the number of callers at a time, and functionCount that of functions they use.
	callers, functionCount = 30, 6
	// maxPods is the quota of pods in testdata.
	maxPods = 10
)

var s *suite.Suite

func TestMain(m *testing.M) { os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected })) }

// TestChaos breaks one thing of each kind at a time, which others have to make up for.
func TestChaos(t *testing.T) {
	t.Logf("seed %d", *seed)
	sys := deploy(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watcher := watch(t, sys)
	var watching sync.WaitGroup
	watching.Go(func() { watcher.run(ctx) })

	crowd := newCrowd(t, sys)
	crowd.settle(t)
	before := sys.amounts(t, held...) // with the connections that calls need
	soak(ctx, t, crowd, *evaluations)
	takeovers(ctx, t, crowd, watcher)
	calling, stopCalling := context.WithCancel(ctx)
	crowd.start(calling)
	storm := &storm{sys: sys, crowd: crowd, random: rand.New(rand.NewPCG(*seed, 1)), busy: make(map[string]bool)}
	storm.rage(ctx, t, *duration)
	stopCalling()
	crowd.wait()

	sys.awaitCalm(t)
	sys.awaitNothingLeft(t, before)
	cancel()
	watching.Wait()
	report(t, crowd, storm, watcher)
	crowd.judge(t)
	watcher.judge(t, storm)
}
