// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// How long no process is kept of a command whose processes do not last: a time that
// doubles with each that ended before it was used.
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

// spares decide which processes are kept started. They do no I/O, have no clock and are
// not safe for concurrent use.
type spares struct {
	cfg       PreforkConfig
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
}

func newSpares(cfg PreforkConfig) *spares { return &spares{cfg: cfg, byKey: map[string]*spareSet{}} }

// key distinguishes commands by all that makes a difference to their processes.
func key(cmd Command) string {
	parts := []string{
		cmd.Path, cmd.Dir, strconv.FormatInt(cmd.MaxOutput, 10), strconv.FormatInt(cmd.MaxLog, 10),
		strconv.Itoa(len(cmd.Args)), strconv.FormatBool(cmd.Network),
	}
	return strings.Join(slices.Concat(parts, cmd.Args, cmd.Env), "\x00")
}

// began records that an evaluation has begun.
func (s *spares) began() { s.running++ }

// ended records that one has ended.
func (s *spares) ended(now time.Time) {
	if s.running == s.cfg.Busy {
		s.freeSince = now
	}
	s.running--
}

// want records that cmd is in use. It returns nil if no processes are to be kept of it.
func (s *spares) want(cmd Command, now time.Time) *spareSet {
	if s.cfg.Keep(cmd.Path) <= 0 {
		return nil
	}
	k := key(cmd)
	if s.byKey[k] == nil {
		s.byKey[k] = &spareSet{cmd: cmd}
	}
	s.byKey[k].lastUse = now
	return s.byKey[k]
}

// pop takes the first process out of the set, nil if there is none.
func (s *spares) pop(set *spareSet) *process {
	if len(set.processes) == 0 {
		return nil
	}
	p := set.processes[0]
	set.processes = set.processes[1:]
	s.kept--
	return p
}

func (s *spares) put(set *spareSet, p *process) {
	set.processes = append(set.processes, p)
	s.kept++
}

// drop takes p out of the set, and reports whether it was there.
func (s *spares) drop(set *spareSet, p *process) bool {
	i := slices.Index(set.processes, p)
	if i < 0 {
		return false
	}
	set.processes = slices.Delete(set.processes, i, i+1)
	s.kept--
	return true
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

// next returns what to do next. Processes to retire are off their spares already.
func (s *spares) next(now time.Time) plan {
	var todo plan
	for k, set := range s.byKey {
		keep := s.keep(set, now)
		for len(set.processes) > keep {
			todo.retire = append(todo.retire, s.pop(set))
		}
		if keep == 0 {
			delete(s.byKey, k)
			continue
		}
		todo.wakeAt(s.expiry(set))
		switch {
		case len(set.processes) == keep || !s.hasCapacity():
		case s.due(set).After(now):
			todo.wakeAt(s.due(set))
		case todo.start == nil || set.lastUse.After(todo.start.lastUse):
			todo.start = set
		}
	}
	s.wake = todo.wake
	return todo
}

// urgent reports whether a process is due in a set, from which the caller has just taken one.
// What is due later is noticed when the evaluation ends: to wake a goroutine now would delay it.
func (s *spares) urgent(set *spareSet, now time.Time) bool {
	return s.early(set) && !s.due(set).After(now)
}

// early reports whether a process may be due in a set before next is called anyway. To
// call it for each evaluation would cost callers who leave no gaps some of the processors.
func (s *spares) early(set *spareSet) bool {
	return s.hasCapacity() && (s.wake.IsZero() || s.due(set).Before(s.wake))
}

// due returns from when on a process may be started for a set that has room.
func (s *spares) due(set *spareSet) time.Time {
	due := s.freeSince.Add(calm)
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
func (s *spares) hasCapacity() bool { return s.running < s.cfg.Busy && s.kept < s.cfg.Total }

// keep returns how many processes of a set to keep.
func (s *spares) keep(set *spareSet, now time.Time) int {
	if !s.expiry(set).After(now) {
		return 0
	}
	return max(0, s.cfg.Keep(set.cmd.Path))
}

// expiry returns when a set is not in use any more.
func (s *spares) expiry(set *spareSet) time.Time { return set.lastUse.Add(s.cfg.Unused) }

// wakeAt makes wake at most t.
func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}
