// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/libs/evalphase"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// phasesAfter is the delay before fnctl shows the phase of an evaluation, such as the start of its pod. Evaluations in
// running pods usually finish earlier, so that fnctl shows no phase for them.
const phasesAfter = 150 * time.Millisecond

// phasesAgain is the interval at which fnctl queries the gateway for the phase of a running evaluation.
const phasesAgain = 500 * time.Millisecond

// phases is an evaluator that shows users the phase of a running evaluation, such as the start of its pod.
type phases struct {
	*client.Gateway
	// wanted is true if the display is enabled.
	wanted bool
}

// Evaluate implements pipeline.Evaluator. Until it returns, it calls req.Waiting with each phase of the evaluation.
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

// showPhases shows the user why a function waits, until ctx is done. It then returns the last reason.
func (p *phases) showPhases(ctx context.Context, req pipeline.Request) (last string) {
	for delay := phasesAfter; retry.Sleep(ctx, delay); delay = phasesAgain {
		status, err := p.Status(ctx)
		if err != nil {
			break
		}
		if now := describeWait(status.GetWaiting(), req); now != last {
			last = now
			req.Waiting(now)
		}
	}
	return last
}

// describeWait returns the phase and the reason of a function's longest wait, or an empty text if no evaluation waits.
func describeWait(waiting []*gatewayv1.GetStatusResponse_Waiting, req pipeline.Request) string {
	for _, w := range waiting {
		if !kptfile.MayMean(w.GetImage(), req.Image, req.Tag) {
			continue
		}
		text, reason := evalphase.Describe(w.GetPhase()), w.GetReason()
		if reason == "" {
			return text
		}
		if text == "" || strings.Contains(strings.ToLower(reason), w.GetPhase()) { // reason already contains the phase
			return reason
		}
		return text + " (" + reason + ")"
	}
	return ""
}
