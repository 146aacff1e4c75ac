// SPDX-License-Identifier: Apache-2.0

// Package history remembers the last evaluations, and what each function did in the last minute. It is
// bounded in number and in bytes, and has nothing of what functions read or write.
package history

import (
	"sync"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// maxRecent is how many evaluations are remembered, and maxFailed how many failed ones: many successes
	// do not push these out.
	maxRecent = 512
	maxFailed = 128
)

// History remembers evaluations. It is safe for concurrent use.
type History struct {
	mu             sync.Mutex
	recent, failed ring[*gatewayv1.Evaluation]
	functions      map[string]*ring[run] // by the image label, of which there is a bounded number
}

// New returns a history without evaluations.
func New() *History {
	return &History{
		recent: ring[*gatewayv1.Evaluation]{max: maxRecent}, failed: ring[*gatewayv1.Evaluation]{max: maxFailed},
		functions: map[string]*ring[run]{},
	}
}

// OK is the code of an evaluation that succeeded.
const OK = "ok"

// Add remembers an evaluation that has ended, and shortens its texts. Label is its image in metrics; an
// evaluation without one, whose request was rejected, counts for no function. Neither side changes the
// evaluation afterwards.
func (h *History) Add(label string, e *gatewayv1.Evaluation) {
	shorten(e)
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

// Select is which evaluations to return.
type Select struct {
	// TraceID, if not empty, selects those of one trace.
	TraceID string
	// Failed selects failed evaluations.
	Failed bool
	// Max is how many to return at most; 0 for all.
	Max int
}

// Evaluations returns the selected evaluations, the newest first.
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
	for e := range in.newest() {
		if s.Max > 0 && len(found) == s.Max {
			break
		}
		if s.TraceID == "" || e.GetTraceId() == s.TraceID {
			found = append(found, e)
		}
	}
	return found
}

// Functions returns what each function did in the minute before now, ordered by image.
func (h *History) Functions(now time.Time) []*gatewayv1.GetStatusResponse_Function {
	all := map[string][]run{}
	h.mu.Lock()
	for label, runs := range h.functions {
		for r := range runs.newest() {
			if now.Sub(r.ended) > window {
				break
			}
			all[label] = append(all[label], r)
		}
	}
	h.mu.Unlock()
	return summaries(all, now)
}
