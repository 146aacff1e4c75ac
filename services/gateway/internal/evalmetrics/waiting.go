// SPDX-License-Identifier: Apache-2.0

package evalmetrics

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// wait is the current wait of an evaluation.
type wait struct {
	image, phase, reason string
	since                time.Time
}

// Waiting summarizes the waits of a function's evaluations in a phase.
type Waiting struct {
	// Image is the canonical name of the function's image. Until the name is resolved, it is the image as callers
	// wrote it.
	Image, Phase string
	// Longest is the duration of the longest wait. Reason is the reason of that wait. It is empty if the reason is
	// unknown.
	Reason  string
	Longest time.Duration
	// Count is the number of waiting evaluations.
	Count int
}

// running is the phase in which the function runs. It is not shown as a wait.
const running = "run"

// recordWait records the reason of an evaluation's wait in a phase. In the phase running, and in the empty phase
// after the end, it removes the evaluation's wait instead.
func (a *Active) recordWait(e *Evaluation, phase, reason string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if phase == "" || phase == running {
		delete(a.waiting, e)
		return
	}
	since := a.waiting[e].since
	if phase != e.phase || since.IsZero() {
		since = time.Now()
	}
	a.waiting[e] = wait{e.image, phase, reason, since}
}

// Waiting returns the waits of evaluations that do not run yet, grouped by function and phase. It returns up to most
// groups, starting with the longest wait.
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
