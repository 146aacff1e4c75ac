// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// wait is what an evaluation waits for.
type wait struct {
	image, phase, reason string
	since                time.Time
}

// Waiting is what evaluations of one function wait for in one phase.
type Waiting struct {
	// Image is the function's canonical name, or the image as callers named it while it is resolved.
	Image, Phase string
	// Reason is what the one that waits longest waits for, if that is known, and Longest how long it does.
	Reason  string
	Longest time.Duration
	// Count is how many there are.
	Count int
}

// running is the phase in which an evaluation waits for nothing but its function.
const running = "run"

// wait records what an evaluation waits for in a phase; nothing if it has ended or runs.
func (a *Active) wait(e *Evaluation, phase, reason string) {
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

// Waiting returns what the evaluations that do not run yet wait for: the longest wait first, and at most so many
// functions and phases.
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
