package fnproc

import (
	"slices"
	"testing"
)

// doomed sees an orphan and reports whether its time is over.
func doomed(l *ledger, pid int) bool { return len(l.seen(pid)) == 0 }

func TestLedgerOrphanWaitsForThoseThatRan(t *testing.T) {
	l := newLedger()
	first, second := l.begin(), l.begin()
	if doomed(&l, 100) {
		t.Error("an orphan is doomed while two evaluations run that it may belong to")
	}
	l.end(first)
	third := l.begin()
	if doomed(&l, 100) {
		t.Error("it is doomed while one of them still runs")
	}
	l.end(second)
	if !doomed(&l, 100) {
		t.Error("it is spared for an evaluation that began after it was seen")
	}
	if doomed(&l, 200) {
		t.Error("an orphan that is seen later is doomed with the earlier one")
	}
	l.end(third)
	if !doomed(&l, 200) {
		t.Error("an orphan is spared though nothing runs")
	}
}

func TestLedgerSuspects(t *testing.T) {
	l := newLedger()
	l.started(10)
	l.started(11)
	l.forget(11)
	l.started(12) // the pid is used again ...
	l.started(12)
	l.forget(12) // ... before its last owner is forgotten
	l.seen(20)
	l.seen(21)
	l.gone(21)
	got := slices.Sorted(slices.Values(l.suspects([]int{10, 11, 12, 30})))
	if want := []int{11, 20, 30}; !slices.Equal(got, want) {
		t.Errorf("suspects are %v, want %v: what was reaped, what was known and what is new", got, want)
	}
}
