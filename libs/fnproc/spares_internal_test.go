// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"testing"
	"time"
)

// epoch is when these tests begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// keepOf keeps what is in m, by path.
func keepOf(m map[string]int) func(string) int { return func(path string) int { return m[path] } }

func TestSparesFill(t *testing.T) {
	s := newSpares(PreforkConfig{Keep: keepOf(map[string]int{"a": 2, "b": 2}), Total: 3, Unused: time.Minute, Busy: 2})
	a := s.want(Command{Path: "a"}, epoch)
	b := s.want(Command{Path: "b"}, epoch.Add(time.Second))
	if s.want(Command{Path: "c"}, epoch) != nil {
		t.Error("there is a spareSet for a command of which nothing is kept")
	}
	now := epoch.Add(2 * time.Second)
	for i, want := range []*spareSet{b, b, a, nil} {
		todo := s.next(now)
		if todo.start != want {
			t.Fatalf("start %d is for %+v, want %+v: the one used last goes first, and three in all", i, todo.start, want)
		}
		if todo.start != nil {
			s.put(todo.start, &process{})
		}
	}
	s.pop(a)
	for running, want := range map[int]*spareSet{1: a, 2: nil} {
		s.running = running
		if got := s.next(now).start; got != want {
			t.Errorf("with %d evaluations a process is started for %+v, want %+v", running, got, want)
		}
	}
}

func TestSparesWaitForCalm(t *testing.T) {
	s := newSpares(PreforkConfig{Keep: keepOf(map[string]int{"a": 1}), Total: 1, Unused: time.Hour, Busy: 2})
	a := s.want(Command{Path: "a"}, epoch)
	s.began()
	s.began()
	s.ended(epoch) // a processor is free from here on
	s.ended(epoch.Add(calm - 1))
	if todo := s.next(epoch.Add(calm - 1)); todo.start != nil || !todo.wake.Equal(epoch.Add(calm)) {
		t.Errorf("%+v right after the processors were busy, want to be woken later", todo)
	}
	if s.next(epoch.Add(calm)).start != a {
		t.Error("none is started although a processor was free for a while")
	}
	s.began()
	s.ended(epoch.Add(calm))
	if s.next(epoch.Add(calm)).start != a {
		t.Error("none is started although there was always a processor free")
	}
}

// TestSparesAreLeftAlone has callers come again as soon as they have their answers.
func TestSparesAreLeftAlone(t *testing.T) {
	s := newSpares(PreforkConfig{Keep: keepOf(map[string]int{"a": 1}), Total: 1, Unused: time.Hour, Busy: 1})
	a := s.want(Command{Path: "a"}, epoch)
	expect := func(want bool, reason string) {
		t.Helper()
		if got := s.early(a); got != want {
			t.Errorf("early is %v, want %v: %s", got, want, reason)
		}
	}
	expect(true, "next has not looked at the first evaluation yet")
	s.began()
	expect(false, "there is no room while all processors are busy")
	s.ended(epoch)
	s.next(epoch)
	expect(false, "it is looked at as soon as it was calm")
	s.began()
	s.ended(epoch.Add(calm / 2))
	expect(false, "that is soon enough, and it was not calm meanwhile")
	now := epoch.Add(2 * calm)
	s.put(s.next(now).start, &process{})
	s.next(now)
	s.pop(a)
	expect(true, "a place is free, and nothing was to be done before the spareSet is out of use")
	a.failed(now)
	s.next(now)
	expect(false, "nothing may be started before it is looked at again")
}

// TestSparesLeaveEvaluationsAlone has an evaluation take one process of two, and the next one
// the other.
func TestSparesLeaveEvaluationsAlone(t *testing.T) {
	s := newSpares(PreforkConfig{Keep: keepOf(map[string]int{"a": 2}), Total: 2, Unused: time.Hour, Busy: 2})
	a := s.want(Command{Path: "a"}, epoch)
	for range 2 {
		s.put(s.next(epoch).start, &process{})
	}
	taken := epoch.Add(time.Minute)
	s.next(taken)
	s.began()
	s.pop(a)
	a.lastTaken = taken
	if s.urgent(a, taken) || s.next(taken).start != nil {
		t.Error("a process is due beside the evaluation, although another one is left")
	}
	if todo := s.next(taken); !todo.wake.Equal(taken.Add(calm)) || s.next(taken.Add(calm)).start != a {
		t.Errorf("%+v, want a process once the evaluation has had some time", todo)
	}
	s.pop(a)
	if s.next(taken); !s.urgent(a, taken) || s.next(taken).start != a {
		t.Error("no process is due although none is left")
	}
}

func TestSparesRetire(t *testing.T) {
	keep := map[string]int{"a": 2}
	s := newSpares(PreforkConfig{Keep: keepOf(keep), Total: 10, Unused: time.Minute, Busy: 1})
	a := s.want(Command{Path: "a"}, epoch)
	first, second := &process{}, &process{}
	s.put(a, first)
	s.put(a, second)

	keep["a"] = 1
	if todo := s.next(epoch); len(todo.retire) != 1 || todo.retire[0] != first || s.kept != 1 {
		t.Errorf("%+v with %d kept: a setting that gets smaller retires the oldest", todo, s.kept)
	}
	if todo := s.next(epoch.Add(59 * time.Second)); len(todo.retire) > 0 || !todo.wake.Equal(epoch.Add(time.Minute)) {
		t.Errorf("%+v before the time is over, want to be woken then", todo)
	}
	if todo := s.next(epoch.Add(time.Minute)); len(todo.retire) != 1 || todo.start != nil || s.kept != 0 || len(s.byKey) > 0 {
		t.Errorf("%+v once it is over, want nothing left", todo)
	}
	if s.drop(a, second) {
		t.Error("a process that was retired is on its spareSet")
	}
}

func TestSpareSetBackoff(t *testing.T) {
	s := newSpares(PreforkConfig{Keep: keepOf(map[string]int{"a": 1}), Total: 1, Unused: time.Hour, Busy: 1})
	a := s.want(Command{Path: "a"}, epoch)
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := a.failed(epoch); got != want {
			t.Errorf("backoff %v, want %v", got, want)
		}
	}
	if todo := s.next(epoch); todo.start != nil || !todo.wake.Equal(epoch.Add(4*time.Second)) {
		t.Errorf("%+v during the backoff, want to be woken after it", todo)
	}
	if s.next(epoch.Add(4*time.Second)).start != a {
		t.Error("none is started after the backoff")
	}
	for range 100 {
		a.failed(epoch)
	}
	if got := a.failed(epoch); got != maxBackoff {
		t.Errorf("backoff %v, want at most %v", got, maxBackoff)
	}
	a.worked()
	if got := a.failed(epoch); got != firstBackoff {
		t.Errorf("backoff %v after a process that was of use, want %v", got, firstBackoff)
	}
}

func TestKeyTellsCommandsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, cmd := range []Command{
		{Path: "a"},
		{Path: "a", Dir: "b"},
		{Path: "a", Args: []string{"b"}},
		{Path: "a", Args: []string{"b", "c"}},
		{Path: "a", Args: []string{"b"}, Env: []string{"c"}},
		{Path: "a", Env: []string{"b", "c"}},
		{Path: "a", MaxOutput: 1},
		{Path: "a", MaxLog: 1},
		{Path: "a", Network: true},
	} {
		if k := key(cmd); seen[k] {
			t.Errorf("%+v has the key of another command", cmd)
		} else {
			seen[k] = true
		}
	}
}
