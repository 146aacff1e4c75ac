// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pods"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// phasesAfter is the delay before the command shows what an evaluation waits for. An evaluation in
// a warm pod takes less.
const phasesAfter = 150 * time.Millisecond

// phases is an evaluator that shows what evaluations wait for.
type phases struct {
	*client.Gateway
	progress *ui.Progress
	// wanted enables the display.
	wanted bool
}

// Evaluate implements pipeline.Evaluator. It shows nothing after it returns.
func (p *phases) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	if !p.wanted {
		return p.Gateway.Evaluate(ctx, req)
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	last := ""
	watch.Go(func() { last = p.show(watching, req) })
	resp, err := p.Gateway.Evaluate(ctx, req)
	stop()
	watch.Wait()
	return resp, client.WaitedFor(err, last)
}

// show prints what req waits for, until ctx ends, and returns the last of it. A gateway without a pod
// evaluator reports nothing.
func (p *phases) show(ctx context.Context, req pipeline.Request) (last string) {
	select {
	case <-time.After(phasesAfter):
	case <-ctx.Done():
		return ""
	}
	var state pods.Pools
	synced := false
	_ = p.WatchPools(ctx, func(change *podmanagerv1.WatchPoolsResponse) error {
		state.Apply(change)
		if synced = synced || change.GetSynced() != nil; !synced {
			return nil
		}
		if now := pods.Waits(functionPools(&state, req)); now != last {
			last = now
			p.progress.Waiting(now)
		}
		return nil
	})
	return last
}

// functionPools returns the pools of the function of req.
func functionPools(state *pods.Pools, req pipeline.Request) []*podmanagerv1.Pool {
	var found []*podmanagerv1.Pool
	for _, pool := range state.All() {
		if pods.Is(pool.GetKey().GetReference(), req.Image, req.Tag) {
			found = append(found, pool)
		}
	}
	return found
}
