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

// calm is how long a processor has to have been free before a process is started that
// nobody waits for. Callers who come again as soon as they have their answer leave shorter
// gaps, in which it would only be in the way of the next evaluation.
const calm = 20 * time.Millisecond

// shelves decide which processes are kept started. They do no I/O, have no clock and are
// not safe for concurrent use.
type shelves struct {
	cfg       StockConfig
	running   int       // evaluations
	freeSince time.Time // since when fewer of them run than there are processors
	kept      int       // processes on all shelves
	byKey     map[string]*shelf
	wake      time.Time // when next is called anyway, zero for never
}

// shelf is the processes that are kept of one command.
type shelf struct {
	cmd      Command
	idle     []*process // the one that was started first is first
	lastUse  time.Time
	failures int // of processes in a row
	notUntil time.Time
}

func newShelves(cfg StockConfig) *shelves { return &shelves{cfg: cfg, byKey: map[string]*shelf{}} }

// key tells commands apart by all that makes a difference to their processes.
func key(cmd Command) string {
	parts := []string{cmd.Path, cmd.Dir, strconv.FormatInt(cmd.MaxOutput, 10), strconv.FormatInt(cmd.MaxLog, 10), strconv.Itoa(len(cmd.Args))}
	return strings.Join(slices.Concat(parts, cmd.Args, cmd.Env), "\x00")
}

// began notes that an evaluation has begun.
func (s *shelves) began() { s.running++ }

// ended notes that one has ended.
func (s *shelves) ended(now time.Time) {
	if s.running == s.cfg.Busy {
		s.freeSince = now
	}
	s.running--
}

// want notes that cmd is in use. It returns nil if no processes are to be kept of it.
func (s *shelves) want(cmd Command, now time.Time) *shelf {
	if s.cfg.Keep(cmd.Path) <= 0 {
		return nil
	}
	k := key(cmd)
	if s.byKey[k] == nil {
		s.byKey[k] = &shelf{cmd: cmd}
	}
	s.byKey[k].lastUse = now
	return s.byKey[k]
}

// pop takes the first process off the shelf, nil if there is none.
func (s *shelves) pop(sh *shelf) *process {
	if len(sh.idle) == 0 {
		return nil
	}
	p := sh.idle[0]
	sh.idle = sh.idle[1:]
	s.kept--
	return p
}

func (s *shelves) put(sh *shelf, p *process) {
	sh.idle = append(sh.idle, p)
	s.kept++
}

// drop takes p off the shelf, and reports whether it was there.
func (s *shelves) drop(sh *shelf, p *process) bool {
	i := slices.Index(sh.idle, p)
	if i < 0 {
		return false
	}
	sh.idle = slices.Delete(sh.idle, i, i+1)
	s.kept--
	return true
}

// worked notes that a process of the shelf was of use.
func (sh *shelf) worked() { sh.failures, sh.notUntil = 0, time.Time{} }

// failed notes that one was not, and returns how long none is started.
func (sh *shelf) failed(now time.Time) time.Duration {
	wait := maxBackoff
	if doublings := sh.failures; doublings < 16 {
		wait = min(wait, firstBackoff<<doublings)
	}
	sh.failures++
	sh.notUntil = now.Add(wait)
	return wait
}

// plan is what to do next.
type plan struct {
	retire []*process
	start  *shelf // nil for none
	// wake is when there is something to do if nothing happens before, zero for never.
	wake time.Time
}

// next returns what to do next. Processes to retire are off their shelves already.
func (s *shelves) next(now time.Time) plan {
	var todo plan
	for k, sh := range s.byKey {
		keep := s.keep(sh, now)
		for len(sh.idle) > keep {
			todo.retire = append(todo.retire, s.pop(sh))
		}
		if keep == 0 {
			delete(s.byKey, k)
			continue
		}
		todo.wakeAt(s.expiry(sh))
		switch {
		case len(sh.idle) == keep || !s.room():
		case s.due(sh).After(now):
			todo.wakeAt(s.due(sh))
		case todo.start == nil || sh.lastUse.After(todo.start.lastUse):
			todo.start = sh
		}
	}
	s.wake = todo.wake
	return todo
}

// early reports whether a process may be due on a shelf before next is called anyway. To
// call it for each evaluation would cost callers who leave no gaps some of the processors.
func (s *shelves) early(sh *shelf) bool {
	return s.room() && (s.wake.IsZero() || s.due(sh).Before(s.wake))
}

// due returns from when on a process may be started for a shelf that has room.
func (s *shelves) due(sh *shelf) time.Time {
	calmSince := s.freeSince.Add(calm)
	if sh.notUntil.After(calmSince) {
		return sh.notUntil
	}
	return calmSince
}

// room reports whether there is room for one more idle process, as soon as it is calm.
func (s *shelves) room() bool { return s.running < s.cfg.Busy && s.kept < s.cfg.Total }

// keep returns how many processes of a shelf to keep.
func (s *shelves) keep(sh *shelf, now time.Time) int {
	if !s.expiry(sh).After(now) {
		return 0
	}
	return max(0, s.cfg.Keep(sh.cmd.Path))
}

// expiry returns when a shelf is not in use any more.
func (s *shelves) expiry(sh *shelf) time.Time { return sh.lastUse.Add(s.cfg.Unused) }

// wakeAt makes wake at most t.
func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}
