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

func TestPolicyFills(t *testing.T) {
	policy := newPolicy(Config{
		Keep:   keepOf(map[string]int{"a": 2, "b": 2}),
		Total:  3,
		Unused: time.Minute,
		Busy:   2,
	})
	a := policy.recordUse(Command{Path: "a"}, epoch)
	b := policy.recordUse(Command{Path: "b"}, epoch.Add(time.Second))
	if policy.recordUse(Command{Path: "c"}, epoch) != nil {
		t.Error("there is a set for a command of which nothing is kept")
	}
	now := epoch.Add(2 * time.Second)
	for i, want := range []*spareSet{b, b, a, nil} {
		todo := policy.nextPlan(now)
		if todo.start != want {
			t.Fatalf("start %d is for %+v, want %+v: the one used last goes first, and three in all", i, todo.start, want)
		}
		if todo.start != nil {
			policy.putProcess(todo.start, &process{})
		}
	}
	policy.popProcess(a)
	for running, want := range map[int]*spareSet{1: a, 2: nil} {
		policy.running = running
		if got := policy.nextPlan(now).start; got != want {
			t.Errorf("with %d evaluations a process is started for %+v, want %+v", running, got, want)
		}
	}
}

func TestPolicyWaitsForCalm(t *testing.T) {
	policy := newPolicy(Config{Keep: keepOf(map[string]int{"a": 1}), Total: 1, Unused: time.Hour, Busy: 2})
	a := policy.recordUse(Command{Path: "a"}, epoch)
	policy.began()
	policy.began()
	policy.ended(epoch) // a processor is free from here on
	policy.ended(epoch.Add(calm - 1))
	if todo := policy.nextPlan(epoch.Add(calm - 1)); todo.start != nil || !todo.wake.Equal(epoch.Add(calm)) {
		t.Errorf("%+v right after the processors were busy, want to be woken later", todo)
	}
	if policy.nextPlan(epoch.Add(calm)).start != a {
		t.Error("none is started although a processor was free for a while")
	}
	policy.began()
	policy.ended(epoch.Add(calm))
	if policy.nextPlan(epoch.Add(calm)).start != a {
		t.Error("none is started although there was always a processor free")
	}
}

// TestPolicyLeavesSteadyCallersAlone has callers come again as soon as they have their answers.
func TestPolicyLeavesSteadyCallersAlone(t *testing.T) {
	policy := newPolicy(Config{Keep: keepOf(map[string]int{"a": 1}), Total: 1, Unused: time.Hour, Busy: 1})
	a := policy.recordUse(Command{Path: "a"}, epoch)
	expect := func(want bool, reason string) {
		t.Helper()
		if got := policy.isEarly(a); got != want {
			t.Errorf("early is %v, want %v: %s", got, want, reason)
		}
	}
	expect(true, "next has not seen the first evaluation yet")
	policy.began()
	expect(false, "none is started while all processors are busy")
	policy.ended(epoch)
	policy.nextPlan(epoch)
	expect(false, "it is checked as soon as it was calm")
	policy.began()
	policy.ended(epoch.Add(calm / 2))
	expect(false, "that is soon enough, and it was not calm meanwhile")
	now := epoch.Add(2 * calm)
	policy.putProcess(policy.nextPlan(now).start, &process{})
	policy.nextPlan(now)
	policy.popProcess(a)
	expect(true, "there is capacity, and nothing was to be done before the set is out of use")
	a.recordFailure(now)
	policy.nextPlan(now)
	expect(false, "nothing may be started before it is checked again")
}

// TestPolicyLeavesEvaluationsAlone has an evaluation take one process of two, and the next one
// the other.
func TestPolicyLeavesEvaluationsAlone(t *testing.T) {
	policy := newPolicy(Config{Keep: keepOf(map[string]int{"a": 2}), Total: 2, Unused: time.Hour, Busy: 2})
	a := policy.recordUse(Command{Path: "a"}, epoch)
	for range 2 {
		policy.putProcess(policy.nextPlan(epoch).start, &process{})
	}
	taken := epoch.Add(time.Minute)
	policy.nextPlan(taken)
	policy.began()
	policy.popProcess(a)
	a.lastTaken = taken
	if policy.isUrgent(a, taken) || policy.nextPlan(taken).start != nil {
		t.Error("a process is due beside the evaluation, although another one is left")
	}
	if todo := policy.nextPlan(taken); !todo.wake.Equal(taken.Add(calm)) || policy.nextPlan(taken.Add(calm)).start != a {
		t.Errorf("%+v, want a process once the evaluation has had some time", todo)
	}
	policy.popProcess(a)
	if policy.nextPlan(taken); !policy.isUrgent(a, taken) || policy.nextPlan(taken).start != a {
		t.Error("no process is due although none is left")
	}
}

func TestPolicyRetires(t *testing.T) {
	keep := map[string]int{"a": 2}
	policy := newPolicy(Config{Keep: keepOf(keep), Total: 10, Unused: time.Minute, Busy: 1})
	a := policy.recordUse(Command{Path: "a"}, epoch)
	first, second := &process{}, &process{}
	policy.putProcess(a, first)
	policy.putProcess(a, second)

	keep["a"] = 1
	if todo := policy.nextPlan(epoch); len(todo.retire) != 1 || todo.retire[0] != first || policy.kept != 1 {
		t.Errorf("%+v with %d kept: a setting that gets smaller retires the oldest", todo, policy.kept)
	}
	todo := policy.nextPlan(epoch.Add(59 * time.Second))
	if len(todo.retire) > 0 || !todo.wake.Equal(epoch.Add(time.Minute)) {
		t.Errorf("%+v before the time is over, want to be woken then", todo)
	}
	todo = policy.nextPlan(epoch.Add(time.Minute))
	if len(todo.retire) != 1 || todo.start != nil || policy.kept != 0 || len(policy.byKey) > 0 {
		t.Errorf("%+v once it is over, want nothing left", todo)
	}
	if policy.dropProcess(a, second) {
		t.Error("a process that was retired is in its set")
	}
}

func TestSpareSetBackoff(t *testing.T) {
	policy := newPolicy(Config{Keep: keepOf(map[string]int{"a": 1}), Total: 1, Unused: time.Hour, Busy: 1})
	a := policy.recordUse(Command{Path: "a"}, epoch)
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := a.recordFailure(epoch); got != want {
			t.Errorf("backoff %v, want %v", got, want)
		}
	}
	if todo := policy.nextPlan(epoch); todo.start != nil || !todo.wake.Equal(epoch.Add(4*time.Second)) {
		t.Errorf("%+v during the backoff, want to be woken after it", todo)
	}
	if policy.nextPlan(epoch.Add(4*time.Second)).start != a {
		t.Error("none is started after the backoff")
	}
	for range 100 {
		a.recordFailure(epoch)
	}
	if got := a.recordFailure(epoch); got != maxBackoff {
		t.Errorf("backoff %v, want at most %v", got, maxBackoff)
	}
	a.recordSuccess()
	if got := a.recordFailure(epoch); got != firstBackoff {
		t.Errorf("backoff %v after a process that was of use, want %v", got, firstBackoff)
	}
}

func TestKeyDistinguishesCommands(t *testing.T) {
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
		{Path: "a", Launch: &Launch{}},
		{Path: "a", Launch: &Launch{Name: "b"}},
		{Path: "a", Launch: &Launch{Name: "c"}, Args: []string{"b"}},
		{Path: "a", Launch: &Launch{Name: "c"}, Args: []string{"c"}},
		{Path: "a", Launch: &Launch{Name: "b", Key: "1"}, Args: []string{"b"}},
		{Path: "a", Launch: &Launch{Name: "b", Key: "2"}, Args: []string{"b"}},
	} {
		if k := commandKey(cmd); seen[k] {
			t.Errorf("%+v has the key of another command", cmd)
		} else {
			seen[k] = true
		}
	}
}
