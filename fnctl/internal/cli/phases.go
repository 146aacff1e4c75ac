// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pods"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// phasesAfter is the delay before the command shows the phase of an evaluation. Evaluations in warm pods are faster,
// so that they show no phase.
const phasesAfter = 150 * time.Millisecond

// phasesAgain is the polling interval for the phases of evaluations at a gateway without pods.
const phasesAgain = 500 * time.Millisecond

// phases is an evaluator that shows the phases of evaluations.
type phases struct {
	*client.Gateway
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
	watch.Go(func() { last = p.showPhases(watching, req) })
	resp, err := p.Gateway.Evaluate(ctx, req)
	stop()
	watch.Wait()
	return resp, client.WaitedFor(err, last)
}

// showPhases prints the phases of req until ctx is done, and returns the last phase. A gateway that has no pods reports
// the phases of its own evaluations, such as the pull of an image.
func (p *phases) showPhases(ctx context.Context, req pipeline.Request) (last string) {
	if !retry.Sleep(ctx, phasesAfter) {
		return ""
	}
	show := func(now string) {
		if now != last {
			last = now
			req.Waiting(now)
		}
	}
	p.showPods(ctx, req, show)
	for {
		status, err := p.Status(ctx)
		if err != nil {
			return last
		}
		show(waitingReason(status.GetWaiting(), req))
		if !retry.Sleep(ctx, phasesAgain) {
			return last
		}
	}
}

// showPods shows the phases of the function's pods, until ctx is done or the gateway reports that it manages no pods.
func (p *phases) showPods(ctx context.Context, req pipeline.Request, show func(string)) {
	var state pods.Pools
	synced := false
	_ = p.WatchPools(ctx, func(change *podmanagerv1.WatchPoolsResponse) error {
		state.Apply(change)
		if synced = synced || change.GetSynced() != nil; synced {
			show(pods.Waits(functionPools(&state, req)))
		}
		return nil
	})
}

// waitingReason returns the reason why evaluations of the function of req wait. It is empty if the gateway reports
// none.
func waitingReason(waiting []*gatewayv1.GetStatusResponse_Waiting, req pipeline.Request) string {
	for _, w := range waiting {
		if pods.Is(w.GetImage(), req.Image, req.Tag) && w.GetReason() != "" {
			return w.GetReason()
		}
	}
	return ""
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
