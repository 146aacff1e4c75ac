// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"testing"
	"time"
)

// TestSparesFollowDemand has more evaluations run at a time than there are spare processes, once.
func TestSparesFollowDemand(t *testing.T) {
	spacious := true
	policy := newPolicy(PreforkConfig{
		Keep: keepOf(map[string]int{"a": 2}), Total: 100, Unused: time.Hour, Busy: 1,
		Spacious: func() bool { return spacious },
	})
	a := policy.want(Command{Path: "a"}, epoch)
	fill := func(now time.Time) int {
		for todo := policy.next(now); todo.start != nil; todo = policy.next(now) {
			policy.put(a, &process{})
		}
		return len(a.processes)
	}
	expect := func(now time.Time, want int, reason string) {
		t.Helper()
		if got := fill(now); got != want {
			t.Errorf("%d spare processes, want %d: %s", got, want, reason)
		}
	}
	burst := func(size int, now time.Time) {
		for range size {
			a.demand.began(now)
		}
		for range size {
			a.demand.ended()
		}
	}
	expect(epoch, 2, "nothing ran yet")
	burst(1, epoch)
	expect(epoch, 2, "one ran at a time")
	spacious = false
	burst(5, epoch)
	expect(epoch, 2, "there is no memory for more")
	spacious = true
	expect(epoch, 5, "five ran at a time")
	spacious = false
	expect(epoch, 5, "what has started is left")
	spacious = true
	burst(100, epoch)
	expect(epoch, MostSpares(2), "there is a bound")

	later := epoch.Add(demandWindow)
	burst(3, later)
	expect(later, MostSpares(2), "the peak of the window before counts")
	if todo := policy.next(later); !todo.wake.Equal(later.Add(demandWindow)) {
		t.Errorf("woken at %v, want at the end of the window, %v", todo.wake, later.Add(demandWindow))
	}
	later = later.Add(demandWindow)
	expect(later, 3, "and that of two windows before does not")
	a.lastUse = later
	expect(later.Add(2*demandWindow), 2, "nothing ran for two windows")
}

// TestLongEvaluationsCount has an evaluation outlast the windows.
func TestLongEvaluationsCount(t *testing.T) {
	var d demand
	for range 3 {
		d.began(epoch)
	}
	if got := d.spares(1, epoch.Add(10*demandWindow)); got != 3 {
		t.Errorf("%d spare processes while three evaluations run, want 3", got)
	}
	for range 3 {
		d.ended()
	}
	if got := d.spares(1, epoch.Add(12*demandWindow)); got != 1 {
		t.Errorf("%d spare processes long after that, want 1", got)
	}
}
