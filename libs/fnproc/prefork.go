// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// Prefork states whether an evaluation used a spare process, which the Runner had started in advance.
type Prefork int

// Values of Prefork.
const (
	PreforkOff  Prefork = iota // no spare processes are kept for the command
	PreforkMiss                // no spare process was available: a new process was started
	PreforkHit                 // a spare process was used
)

func (p Prefork) String() string { return [...]string{"off", "miss", "hit"}[p] }

// beginEvaluation records the start of an evaluation of cmd. It returns the command's set of spare processes, which
// were started in advance, and a process from the set that it reserved for the evaluation. Each result may be nil. For
// example, an evaluation without input gets no spare process. This is because the Runner could not detect whether the
// process read its input. Callers must call endEvaluation later.
func (r *Runner) beginEvaluation(cmd Command, stdin []byte) (*spareSet, *process) {
	file, ok := identifyProgram(cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy.began()
	now := time.Now()
	set := r.policy.recordUse(cmd, now)
	if set == nil || len(stdin) == 0 {
		return set, nil
	}
	for p := r.policy.popProcess(set); p != nil; p = r.policy.popProcess(set) {
		switch {
		case !ok || p.spare.file != file:
			p.retire()
		case p.takeOver():
			set.lastTaken = now
			if r.policy.isUrgent(set, now) {
				r.Changed()
			}
			return set, p
		default:
			r.recordFailure(set, "it has ended")
		}
	}
	return set, nil
}

func (r *Runner) endEvaluation(set *spareSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.policy.ended(now)
	if set == nil {
		return
	}
	set.lastUse = now
	if r.policy.isEarly(set) {
		r.Changed()
	}
}

// usedSpare records whether an evaluation could use its spare process, and returns the same value. The value is false
// if the process did not read its input, because it was already exiting when the evaluation chose it. The caller must
// then start a new process.
func (r *Runner) usedSpare(set *spareSet, used bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if used {
		set.recordSuccess()
	} else {
		r.recordFailure(set, "it ended without reading its input")
	}
	return used
}

// Changed makes the Runner call Config.Keep again, and start or kill spare processes accordingly. Callers must call it
// when the result of Config.Keep for a function changes.
func (r *Runner) Changed() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Spares returns the number of processes that were started in advance and wait for an evaluation.
func (r *Runner) Spares() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policy.kept
}

// Prepare makes the Runner start processes of cmd in advance, before the first evaluation of cmd.
func (r *Runner) Prepare(cmd Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy.recordUse(cmd, time.Now())
	r.Changed()
}

// Forget kills the spare processes of all functions whose names (see [Command.Function]) satisfy the given predicate.
// It returns after the processes have exited. Running evaluations continue. The functions get new spare processes only
// after another evaluation.
func (r *Runner) Forget(which func(function string) bool) {
	r.mu.Lock()
	ending := r.policy.forgetFunctions(which)
	for _, p := range ending {
		p.retire()
	}
	r.mu.Unlock()
	for _, p := range ending {
		<-p.exited
	}
}

// keepSpares starts and kills spare processes, which wait for evaluations, as preforkPolicy decides. When ctx is
// canceled, it kills all of them.
func (r *Runner) keepSpares(ctx context.Context) {
	for ctx.Err() == nil {
		todo := r.nextPlan()
		if todo.start != nil {
			r.startPlanned(todo.start)
			continue
		}
		r.waitForWork(ctx, todo.wake)
	}
	r.mu.Lock()
	r.policy.cfg.Keep = func(string) int { return 0 }
	r.mu.Unlock()
	r.nextPlan()
	r.ends.Wait()
}

// nextPlan returns the policy's next plan, and kills the spare processes that are no longer needed.
func (r *Runner) nextPlan() plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	todo := r.policy.nextPlan(time.Now())
	for _, p := range todo.retire {
		p.retire()
	}
	return todo
}

// waitForWork waits for a call of Changed, the end of ctx, or the given time. A zero time means no time limit.
func (r *Runner) waitForWork(ctx context.Context, until time.Time) {
	var timeUp <-chan time.Time
	if !until.IsZero() {
		timeUp = time.After(time.Until(until))
	}
	select {
	case <-ctx.Done():
	case <-r.nudge:
	case <-timeUp:
	}
}

// startPlanned starts a spare process and adds it to the set of its command.
func (r *Runner) startPlanned(set *spareSet) {
	p, err := r.startSpare(set.cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.recordFailure(set, err.Error())
		return
	}
	if set.forgotten {
		p.retire() // Forget was called during the start
	} else {
		r.policy.putProcess(set, p)
	}
	r.ends.Go(func() { r.awaitSpareEnd(set, p) })
}

// awaitSpareEnd waits until a spare process exits. If no evaluation uses the process, awaitSpareEnd frees its
// resources. It also records a failure unless the Runner itself killed the process.
func (r *Runner) awaitSpareEnd(set *spareSet, p *process) {
	<-p.exited
	p.spare.retire()
	if p.spare.inUse() {
		return
	}
	state, err := p.finish()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.policy.dropProcess(set, p) {
		return // retired already
	}
	why := outcomeOf(state).Status
	if reason := p.killedFor(); reason != nil {
		err = reason
	}
	if err != nil {
		why = err.Error()
	}
	if errors.Is(p.killedFor(), errContainerFull) {
		r.logFailure(set, why, set.pause(time.Now()))
	} else {
		r.recordFailure(set, why)
	}
	r.Changed()
}

// recordFailure records and logs that a spare process exited before an evaluation could use it. The caller holds mu.
func (r *Runner) recordFailure(set *spareSet, why string) {
	r.logFailure(set, why, set.recordFailure(time.Now()))
}

func (r *Runner) logFailure(set *spareSet, why string, wait time.Duration) {
	r.cfg.Log.Info("spare process ended before it was used",
		"path", set.cmd.Function(), "reason", why, "next_in", wait)
}

// maxSpareBytes is the maximum number of bytes that a spare process may write to each of stdout and stderr while it
// waits for its input. Most processes write nothing then, or a short greeting.
const maxSpareBytes = 64 << 10

var (
	errTalksBeforeInput = errors.New("it wrote more than a spare process may")
	errNotNeeded        = errors.New("it is no longer needed")
	errContainerFull    = errors.New("the container has almost no memory or processes left")
)

// spareState records whether a process is an unused spare process. The zero value means that an evaluation uses the
// process.
type spareState struct {
	state atomic.Int32
	file  fileID
	// input is the reading end of the function's stdin pipe. We keep it open to query the number of bytes that the
	// function has not read.
	input *os.File
}

// States of a process. A process changes its state at most once, and only from stateSpare.
const (
	stateInUse int32 = iota // owned by an evaluation
	stateSpare              // available to an evaluation
	stateEnded              // no longer usable
)

// startSpare starts a process of cmd before an evaluation needs it. If an evaluation uses the process, the evaluation
// must call the process's method finish. Otherwise the Runner must call finish.
func (r *Runner) startSpare(cmd Command) (*process, error) {
	p := r.newProcess(cmd)
	p.spare.state.Store(stateSpare)
	// We identify the program's file before the start. If the file changes during the start, the process then counts as
	// outdated.
	p.spare.file, _ = identifyProgram(cmd)
	if err := p.start(minBuffer); err != nil {
		return nil, err
	}
	return p, nil
}

// takeOver reserves a process for an evaluation. It returns false if the process has exited or will be killed.
func (p *process) takeOver() bool {
	select {
	case <-p.exited:
		return false
	default:
	}
	return p.spare.changeState(stateInUse)
}

// retire kills a process that was started in advance, unless an evaluation uses it.
func (p *process) retire() {
	if p.spare.retire() {
		p.kill(errNotNeeded)
	}
}

// retire marks a process as unusable, unless an evaluation uses it. It returns true if it has changed the state.
func (s *spareState) retire() bool { return s.changeState(stateEnded) }

func (s *spareState) changeState(state int32) bool { return s.state.CompareAndSwap(stateSpare, state) }

func (s *spareState) inUse() bool { return s.state.Load() == stateInUse }

// tooMuch reports whether an unused spare process has written too much. If so, it also marks the process as unusable.
func (s *spareState) tooMuch(size int) bool { return size > maxSpareBytes && s.retire() }

// readNothing reports whether the function has not read any of the written bytes of its input. It returns false for
// processes that were not started in advance.
func (s *spareState) readNothing(written int) bool {
	unread, err := countUnread(s.input)
	return err == nil && unread == written
}

// fileID identifies a version of a program's file, so that processes started from an older version are not used.
type fileID struct {
	device, inode   uint64
	size            int64
	modified, moved syscall.Timespec
}

// identifyProgram identifies the file of a command's program. It returns false if the file is missing.
func identifyProgram(cmd Command) (id fileID, ok bool) {
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return idOf(stat), true
}
