// SPDX-License-Identifier: Apache-2.0

// Package evalhistory stores recent evaluations, and the activity of each function in the last minute, for the
// status page. The numbers of evaluations and the length of their texts are bounded. No text contains parts of a
// function's input or output.
package evalhistory

import (
	"sync"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// maxRecent is the maximum number of stored evaluations. The last maxFailed failures are also stored separately, so
	// that many successes do not replace them.
	maxRecent = 512
	maxFailed = 128
)

// History stores recent evaluations of a gateway. It is safe for concurrent use.
type History struct {
	mu             sync.Mutex
	recent, failed ring[*gatewayv1.Evaluation]
	functions      map[string]*ring[run] // key: the image's label in metrics, of which there is a limited number
}

// New returns a history without evaluations.
func New() *History {
	return &History{
		recent: ring[*gatewayv1.Evaluation]{max: maxRecent}, failed: ring[*gatewayv1.Evaluation]{max: maxFailed},
		functions: map[string]*ring[run]{},
	}
}

// OK is the code of a successful evaluation. The code of a failed evaluation is the class of its error.
const OK = "ok"

// Add stores a finished evaluation, and shortens its texts. label is the image's label in metrics, or empty if the
// request was rejected. Callers must not change e afterwards.
func (h *History) Add(label string, e *gatewayv1.Evaluation) {
	shortenTexts(e)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recent.add(e)
	failed := e.GetCode() != OK
	if failed {
		h.failed.add(e)
	}
	if label == "" {
		return
	}
	runs := h.functions[label]
	if runs == nil {
		runs = &ring[run]{max: maxRuns}
		h.functions[label] = runs
	}
	took := e.GetDuration().AsDuration()
	runs.add(run{ended: e.GetStartTime().AsTime().Add(took), took: took, failed: failed})
}

// Select contains the criteria by which [History.Evaluations] selects evaluations.
type Select struct {
	// TraceID selects the evaluations that belong to a trace. If it is empty, all evaluations are selected.
	TraceID string
	// Failed selects only failed evaluations.
	Failed bool
	// Max is the maximum number of evaluations. Zero means no limit.
	Max int
}

// Evaluations returns the evaluations that match s, starting with the newest.
func (h *History) Evaluations(s Select) []*gatewayv1.Evaluation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.Failed {
		return h.search(&h.failed, s)
	}
	if found := h.search(&h.recent, s); len(found) > 0 || s.TraceID == "" {
		return found
	}
	return h.search(&h.failed, s)
}

func (h *History) search(in *ring[*gatewayv1.Evaluation], s Select) []*gatewayv1.Evaluation {
	var found []*gatewayv1.Evaluation
	for e := range in.newestFirst() {
		if s.Max > 0 && len(found) == s.Max {
			break
		}
		if s.TraceID == "" || e.GetTraceId() == s.TraceID {
			found = append(found, e)
		}
	}
	return found
}

// Functions returns rate, failures and durations of each function in the minute before now, ordered by image.
func (h *History) Functions(now time.Time) []*gatewayv1.GetStatusResponse_Function {
	all := map[string][]run{}
	h.mu.Lock()
	for label, runs := range h.functions {
		for r := range runs.newestFirst() {
			if now.Sub(r.ended) > window {
				break
			}
			all[label] = append(all[label], r)
		}
	}
	h.mu.Unlock()
	return summarizeFunctions(all, now)
}
