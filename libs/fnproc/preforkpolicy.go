// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Delays before a spare process replaces a spare process that exited unused. The first delay is firstBackoff. It
// doubles with each further such exit of the command, up to maxBackoff.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// fullPause is the delay after the container had almost run out of memory or processes.
	fullPause = 30 * time.Second
)

// calm is the time that a processor must be free before we start a spare process. Many callers send their next request
// right after an answer. Without this delay, we would start a process in between, and delay the next evaluation. We
// also wait for this time after an evaluation has taken a spare process. Otherwise starting the replacement would slow
// down a short evaluation. This second wait is skipped if the command has no other spare process.
const calm = 20 * time.Millisecond

// preforkPolicy decides when to start and kill spare processes. It performs no I/O and reads no clock. It is not safe
// for concurrent use.
type preforkPolicy struct {
	cfg       Config
	running   int       // number of evaluations
	freeSince time.Time // time when running last fell below Config.Busy
	kept      int       // number of processes in all sets
	byKey     map[string]*spareSet
	wake      time.Time // next time when nextPlan is due, or zero for never
}

// spareSet contains the spare processes of a command. They were started in advance and wait for an evaluation.
type spareSet struct {
	cmd       Command
	processes []*process // oldest first
	lastUse   time.Time
	lastTaken time.Time // time when an evaluation last took a process
	failures  int       // consecutive failures
	notUntil  time.Time
	forgotten bool // removed from the policy
}

func newPolicy(cfg Config) *preforkPolicy {
	return &preforkPolicy{cfg: cfg, byKey: map[string]*spareSet{}}
}

// commandKey returns a key that is equal for commands that can share spare processes.
func commandKey(cmd Command) string {
	own := cmd.keyParts()
	parts := []string{
		cmd.Path, cmd.Dir, strconv.FormatInt(cmd.MaxOutput, 10), strconv.FormatInt(cmd.MaxLog, 10),
		strconv.Itoa(len(own)), strconv.FormatBool(cmd.Network), strconv.FormatBool(cmd.Launch != nil),
	}
	return strings.Join(slices.Concat(parts, own, cmd.Env), "\x00")
}

func (policy *preforkPolicy) began() { policy.running++ }

func (policy *preforkPolicy) ended(now time.Time) {
	if policy.running == policy.cfg.Busy {
		policy.freeSince = now
	}
	policy.running--
}

// recordUse records a use of the command cmd at the time now, which makes the command eligible for spare processes. It
// returns the command's set of spare processes, or nil if the settings permit none for the command.
func (policy *preforkPolicy) recordUse(cmd Command, now time.Time) *spareSet {
	if cmd.Shared || policy.cfg.Keep(cmd.Function()) <= 0 {
		return nil
	}
	k := commandKey(cmd)
	if policy.byKey[k] == nil {
		policy.byKey[k] = &spareSet{cmd: cmd}
	}
	policy.byKey[k].lastUse = now
	return policy.byKey[k]
}

// popProcess removes and returns the oldest process of the set. It returns nil if the set is empty.
func (policy *preforkPolicy) popProcess(set *spareSet) *process {
	if len(set.processes) == 0 {
		return nil
	}
	p := set.processes[0]
	set.processes = set.processes[1:]
	policy.kept--
	return p
}

func (policy *preforkPolicy) putProcess(set *spareSet, p *process) {
	set.processes = append(set.processes, p)
	policy.kept++
}

// dropProcess removes the process p from the set, and reports whether the set contained it.
func (policy *preforkPolicy) dropProcess(set *spareSet, p *process) bool {
	i := slices.Index(set.processes, p)
	if i < 0 {
		return false
	}
	set.processes = slices.Delete(set.processes, i, i+1)
	policy.kept--
	return true
}

// forgetFunctions removes and returns the spare processes of all functions whose names satisfy the given predicate. The
// caller must kill these processes.
func (policy *preforkPolicy) forgetFunctions(which func(function string) bool) (ending []*process) {
	for k, set := range policy.byKey {
		if !which(set.cmd.Function()) {
			continue
		}
		for p := policy.popProcess(set); p != nil; p = policy.popProcess(set) {
			ending = append(ending, p)
		}
		set.forgotten = true
		delete(policy.byKey, k)
	}
	return ending
}

// recordSuccess records that an evaluation used a process of the set. It cancels the delay that earlier failures
// caused.
func (set *spareSet) recordSuccess() { set.failures, set.notUntil = 0, time.Time{} }

// recordFailure records that a process of the set exited before its use. It returns the delay before the next
// start.
func (set *spareSet) recordFailure(now time.Time) time.Duration {
	wait := maxBackoff
	if doublings := set.failures; doublings < 16 {
		wait = min(wait, firstBackoff<<doublings)
	}
	set.failures++
	set.notUntil = now.Add(wait)
	return wait
}

// pause delays the next start after the Watch killed a process of the set, and returns the delay. It does not count the
// kill as a failure of the process, because the Watch also kills spare processes that use little memory.
func (set *spareSet) pause(now time.Time) time.Duration {
	set.notUntil = now.Add(fullPause)
	return fullPause
}

// plan is the next step of a Runner: unused processes to kill, and a spare process to start.
type plan struct {
	retire []*process
	start  *spareSet // set for which to start a process, or nil
	// wake is the time of the next plan if nothing changes until then. Zero means never.
	wake time.Time
}

// nextPlan returns the plan for the next step of the Runner. It removes the processes in plan.retire from their sets.
// The Runner must then kill them.
func (policy *preforkPolicy) nextPlan(now time.Time) plan {
	var todo plan
	for k, set := range policy.byKey {
		keep := policy.keepCount(set, now)
		for len(set.processes) > keep {
			todo.retire = append(todo.retire, policy.popProcess(set))
		}
		if keep == 0 {
			delete(policy.byKey, k)
			continue
		}
		todo.wakeAt(policy.expiryTime(set))
		switch {
		case len(set.processes) == keep || !policy.hasCapacity():
		case policy.dueTime(set).After(now):
			todo.wakeAt(policy.dueTime(set))
		case todo.start == nil || set.lastUse.After(todo.start.lastUse):
			todo.start = set
		}
	}
	policy.wake = todo.wake
	return todo
}

// isUrgent reports whether the Runner must immediately replace a spare process that an evaluation has just taken. If
// not, it starts the replacement after the evaluation, because waking a goroutine now would delay the evaluation.
func (policy *preforkPolicy) isUrgent(set *spareSet, now time.Time) bool {
	return policy.isEarly(set) && !policy.dueTime(set).After(now)
}

// isEarly reports whether a spare process of the set may start before the Runner's next plan is due. If so, the Runner
// must plan immediately. It does not plan after every evaluation, because this would cost processor time under constant
// load.
func (policy *preforkPolicy) isEarly(set *spareSet) bool {
	return policy.hasCapacity() && (policy.wake.IsZero() || policy.dueTime(set).Before(policy.wake))
}

// dueTime returns the earliest time when the Runner may start another spare process for the set.
func (policy *preforkPolicy) dueTime(set *spareSet) time.Time {
	var replaced time.Time // zero for an empty set: no delay
	if len(set.processes) > 0 {
		replaced = set.lastTaken.Add(calm)
	}
	return slices.MaxFunc([]time.Time{policy.freeSince.Add(calm), replaced, set.notUntil}, time.Time.Compare)
}

// hasCapacity reports whether another spare process may be started. Fewer than Config.Busy evaluations must be
// running, and fewer than Config.Total spare processes must exist.
func (policy *preforkPolicy) hasCapacity() bool {
	return policy.running < policy.cfg.Busy && policy.kept < policy.cfg.Total
}

// keepCount returns the number of spare processes that a set should contain now. It returns zero if the command has
// not been used for the time Config.Unused.
func (policy *preforkPolicy) keepCount(set *spareSet, now time.Time) int {
	if !policy.expiryTime(set).After(now) {
		return 0
	}
	return max(0, policy.cfg.Keep(set.cmd.Function()))
}

// expiryTime returns the time when the Runner kills the processes of a set unless their command is used again.
func (policy *preforkPolicy) expiryTime(set *spareSet) time.Time {
	return set.lastUse.Add(policy.cfg.Unused)
}

// wakeAt makes the Runner plan again no later than at time t.
func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}
