// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/spantree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const spansTimeout = 5 * time.Second

// traces is an evaluator for --trace. It queries the gateway for the duration of each evaluation's phases.
type traces struct {
	pipeline.Evaluator

	gateway *client.Gateway
	mu      sync.Mutex
	calls   []spantree.Call
}

// Evaluate implements pipeline.Evaluator.
func (t *traces) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	traced, id := client.Traced(ctx)
	start := time.Now()
	resp, err := t.Evaluator.Evaluate(traced, req)
	function := kptfile.Function{Image: req.Image, Tag: req.Tag}
	call := spantree.Call{Function: function.FullTitle(), TraceID: id, Took: time.Since(start)}
	t.findSpans(ctx, &call)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, call)
	return resp, err
}

// findSpans adds the gateway's record of an evaluation to call, even after the user interrupted the evaluation.
func (t *traces) findSpans(ctx context.Context, call *spantree.Call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spansTimeout)
	defer cancel()
	found, err := t.gateway.Evaluations(ctx, &gatewayv1.ListEvaluationsRequest{TraceId: call.TraceID, Max: 1})
	switch {
	case err != nil:
		call.Missing = err.Error()
	case len(found) == 0:
		call.Missing = "it does not know the evaluation; another replica may have answered"
	default:
		call.Evaluation = found[0]
	}
}

// printSpans prints the phases of all evaluations as trees of spans.
func (t *traces) printSpans(out *ui.Printer, width int) {
	for _, call := range t.calls {
		for _, line := range call.Lines(width) {
			out.Line("%s", ui.OneLine(line))
		}
	}
}
