// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"
)

// TestSecondPodComesBeforeItIsNeeded has two evaluations at a time, which are all that one pod is meant for, and then
// three. With scaling ahead the second pod is ready before the third evaluation comes; without, it is created for that.
func TestSecondPodComesBeforeItIsNeeded(t *testing.T) {
	for name, row := range map[string]struct {
		ahead  bool
		before int // pods
	}{
		"ahead": {true, 2}, "when evaluations wait": {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.Ahead, s.Startup = row.ahead, 3*time.Second
			simulate(t, s, func(w *world) {
				together := func(evaluations int) {
					for range 20 {
						for range evaluations {
							w.call(image(0), time.Second)
						}
						wait(2 * time.Second)
					}
				}
				w.call(image(0), 0)
				wait(10 * time.Second) // its pod is ready
				together(2)
				if got := w.counts(); got.created != row.before || w.serving() != row.before {
					t.Errorf("%d pods of %d created ones serve before there are three evaluations at a time, want %d",
						w.serving(), got.created, row.before)
				}
				together(3)
				if got := w.counts(); got.created != 2 || w.serving() != 2 {
					t.Errorf("%d pods of %d created ones serve three evaluations at a time, want 2", w.serving(), got.created)
				}
			})
		})
	}
}

// serving returns how many pods serve.
func (w *world) serving() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, p := range w.pods {
		if !p.gone && !p.silent {
			n++
		}
	}
	return n
}
