// SPDX-License-Identifier: Apache-2.0

package evalmetrics

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// wait is the current wait of a running evaluation, with its reason and its start time.
type wait struct {
	image, phase, reason string
	since                time.Time
}

// Waiting summarizes the evaluations of a function that wait in the same phase, for the status page.
type Waiting struct {
	// Image is the canonical name of the function's image, or the requested name until the gateway has resolved it.
	Image, Phase string
	// Reason is the reason of the longest wait. It is empty if the reason is unknown.
	Reason  string
	Longest time.Duration
	// Count is the number of evaluations that wait.
	Count int
}

// runPhase is the phase in which the function runs. In all other phases, the evaluation waits.
const runPhase = "run"

// recordWait records the reason of an evaluation's wait in a phase. If the function runs, or if phase is empty because
// the evaluation has ended, the evaluation no longer waits. recordWait then deletes the record.
func (a *Active) recordWait(e *Evaluation, phase, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if phase == "" || phase == runPhase {
		delete(a.waiting, e)
		return
	}
	since := a.waiting[e].since
	if phase != e.phase || since.IsZero() {
		since = time.Now()
	}
	a.waiting[e] = wait{e.image, phase, reason, since}
}

// Waiting returns summaries of waiting evaluations, at most the given number, starting with the longest wait. Each
// summary covers the evaluations of a function in the same phase.
func (a *Active) Waiting(most int) []Waiting {
	type group struct{ image, phase string }
	groups, now := map[group]Waiting{}, time.Now()
	a.mu.Lock()
	for _, w := range a.waiting {
		of, longest := group{w.image, w.phase}, now.Sub(w.since)
		g, known := groups[of]
		if !known || longest > g.Longest {
			g = Waiting{w.image, w.phase, w.reason, longest, g.Count}
		}
		g.Count++
		groups[of] = g
	}
	a.mu.Unlock()
	all := slices.SortedFunc(maps.Values(groups), func(x, y Waiting) int {
		return cmp.Or(cmp.Compare(y.Longest, x.Longest), cmp.Compare(x.Image, y.Image), cmp.Compare(x.Phase, y.Phase))
	})
	return all[:min(len(all), most)]
}
