// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// wait is the reason of an evaluation's wait.
type wait struct {
	image, phase, reason string
	since                time.Time
}

// Waiting is the wait of a function's evaluations in a phase.
type Waiting struct {
	// Image is the function's canonical name. Until that is resolved it is the image as callers wrote it.
	Image, Phase string
	// Reason is the reason of the longest wait, and empty if it is unknown. Longest is the duration of that wait.
	Reason  string
	Longest time.Duration
	// Count is the number of evaluations.
	Count int
}

// running is the phase in which an evaluation waits only for its function.
const running = "run"

// recordWait records the reason of an evaluation's wait in a phase. An evaluation that runs or has ended does not wait.
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

// Waiting returns the waits of evaluations that do not run yet, for at most max functions and phases, starting with the
// longest wait.
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
