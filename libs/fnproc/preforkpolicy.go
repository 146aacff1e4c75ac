// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The backoff before a new spare process of a command whose spare processes end early: it doubles
// with each that ended before it was used.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
)

// calm is how long a processor has to have been free before a spare process is started.
// Callers that send their next request right after an answer leave shorter gaps, in which
// the start would only delay the next evaluation. It is also how long after a process was
// taken the next one is started, if another one is left: beside a short evaluation the start
// would delay that one.
const calm = 20 * time.Millisecond

// preforkPolicy decides which processes are kept started. It does no I/O, has no clock and is
// not safe for concurrent use.
type preforkPolicy struct {
	cfg       Config
	running   int       // evaluations
	freeSince time.Time // since when fewer of them run than there are processors
	kept      int       // processes in all sets
	byKey     map[string]*spareSet
	wake      time.Time // when next is called anyway, zero for never
}

// spareSet is the processes that are kept of one command.
type spareSet struct {
	cmd       Command
	processes []*process // the one that was started first is first
	lastUse   time.Time
	lastTaken time.Time // when an evaluation took a process
	failures  int       // of processes in a row
	notUntil  time.Time
	forgotten bool // it is no set of the policy any more
}

func newPolicy(cfg Config) *preforkPolicy {
	return &preforkPolicy{cfg: cfg, byKey: map[string]*spareSet{}}
}

// key distinguishes commands by all that makes a difference to their processes.
func key(cmd Command) string {
	own := cmd.parts()
	parts := []string{
		cmd.Path, cmd.Dir, strconv.FormatInt(cmd.MaxOutput, 10), strconv.FormatInt(cmd.MaxLog, 10),
		strconv.Itoa(len(own)), strconv.FormatBool(cmd.Network), strconv.FormatBool(cmd.Launch != nil),
	}
	return strings.Join(slices.Concat(parts, own, cmd.Env), "\x00")
}

// began records that an evaluation has begun.
func (policy *preforkPolicy) began() { policy.running++ }

// ended records that one has ended.
func (policy *preforkPolicy) ended(now time.Time) {
	if policy.running == policy.cfg.Busy {
		policy.freeSince = now
	}
	policy.running--
}

// want records that cmd is in use. It returns nil if it gets no spare processes.
func (policy *preforkPolicy) want(cmd Command, now time.Time) *spareSet {
	if cmd.Shared || policy.cfg.Keep(cmd.Function()) <= 0 {
		return nil
	}
	k := key(cmd)
	if policy.byKey[k] == nil {
		policy.byKey[k] = &spareSet{cmd: cmd}
	}
	policy.byKey[k].lastUse = now
	return policy.byKey[k]
}

// pop takes the first process out of the set, nil if there is none.
func (policy *preforkPolicy) pop(set *spareSet) *process {
	if len(set.processes) == 0 {
		return nil
	}
	p := set.processes[0]
	set.processes = set.processes[1:]
	policy.kept--
	return p
}

func (policy *preforkPolicy) put(set *spareSet, p *process) {
	set.processes = append(set.processes, p)
	policy.kept++
}

// drop takes p out of the set, and reports whether it was there.
func (policy *preforkPolicy) drop(set *spareSet, p *process) bool {
	i := slices.Index(set.processes, p)
	if i < 0 {
		return false
	}
	set.processes = slices.Delete(set.processes, i, i+1)
	policy.kept--
	return true
}

// forget removes the sets of functions, and returns the processes that were in them.
func (policy *preforkPolicy) forget(which func(function string) bool) (ending []*process) {
	for k, set := range policy.byKey {
		if !which(set.cmd.Function()) {
			continue
		}
		for p := policy.pop(set); p != nil; p = policy.pop(set) {
			ending = append(ending, p)
		}
		set.forgotten = true
		delete(policy.byKey, k)
	}
	return ending
}

// worked records that a process of the set was of use.
func (set *spareSet) worked() { set.failures, set.notUntil = 0, time.Time{} }

// failed records that one was not, and returns how long none is started.
func (set *spareSet) failed(now time.Time) time.Duration {
	wait := maxBackoff
	if doublings := set.failures; doublings < 16 {
		wait = min(wait, firstBackoff<<doublings)
	}
	set.failures++
	set.notUntil = now.Add(wait)
	return wait
}

// plan is what to do next.
type plan struct {
	retire []*process
	start  *spareSet // nil for none
	// wake is when there is something to do if nothing happens before, zero for never.
	wake time.Time
}

// next returns what to do next. It has removed processes to retire from their sets.
func (policy *preforkPolicy) next(now time.Time) plan {
	var todo plan
	for k, set := range policy.byKey {
		keep := policy.keep(set, now)
		for len(set.processes) > keep {
			todo.retire = append(todo.retire, policy.pop(set))
		}
		if keep == 0 {
			delete(policy.byKey, k)
			continue
		}
		todo.wakeAt(policy.expiry(set))
		switch {
		case len(set.processes) == keep || !policy.hasCapacity():
		case policy.due(set).After(now):
			todo.wakeAt(policy.due(set))
		case todo.start == nil || set.lastUse.After(todo.start.lastUse):
			todo.start = set
		}
	}
	policy.wake = todo.wake
	return todo
}

// urgent reports whether a process is due in a set, from which the caller has just taken one.
// What is due later is noticed when the evaluation ends: to wake a goroutine now would delay it.
func (policy *preforkPolicy) urgent(set *spareSet, now time.Time) bool {
	return policy.early(set) && !policy.due(set).After(now)
}

// early reports whether a process may be due in a set before next is called anyway. To
// call it for each evaluation would cost callers who leave no gaps some of the processors.
func (policy *preforkPolicy) early(set *spareSet) bool {
	return policy.hasCapacity() && (policy.wake.IsZero() || policy.due(set).Before(policy.wake))
}

// due returns from when on a process may be started for a set that lacks one.
func (policy *preforkPolicy) due(set *spareSet) time.Time {
	due := policy.freeSince.Add(calm)
	if len(set.processes) > 0 {
		due = latest(due, set.lastTaken.Add(calm))
	}
	return latest(due, set.notUntil)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hasCapacity reports whether there may be one more spare process, as soon as it is calm.
func (policy *preforkPolicy) hasCapacity() bool {
	return policy.running < policy.cfg.Busy && policy.kept < policy.cfg.Total
}

// keep returns the number of processes of a set to keep.
func (policy *preforkPolicy) keep(set *spareSet, now time.Time) int {
	if !policy.expiry(set).After(now) {
		return 0
	}
	return max(0, policy.cfg.Keep(set.cmd.Function()))
}

// expiry returns when a set is not in use any more.
func (policy *preforkPolicy) expiry(set *spareSet) time.Time {
	return set.lastUse.Add(policy.cfg.Unused)
}

// wakeAt makes wake at most t.
func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}
