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

	"golang.org/x/sys/unix"
)

// Prefork is whether a process was started before its evaluation.
type Prefork int

// The ways to get a process.
const (
	PreforkOff  Prefork = iota // this command has no spare processes
	PreforkMiss                // there was none, so one was started
	PreforkHit                 // one was there
)

func (p Prefork) String() string { return [...]string{"off", "miss", "hit"}[p] }

// begin records that an evaluation begins. It returns the command's set of spare processes, nil if the command gets
// none, and one of the processes, nil if there is none. The process belongs to the evaluation. Callers must call end.
//
// An evaluation without input gets no spare process: it would be unknown whether the process had
// read its input.
func (r *Runner) begin(cmd Command, stdin []byte) (*spareSet, *process) {
	file, ok := identify(cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy.began()
	now := time.Now()
	set := r.policy.want(cmd, now)
	if set == nil || len(stdin) == 0 {
		return set, nil
	}
	for p := r.policy.pop(set); p != nil; p = r.policy.pop(set) {
		switch {
		case !ok || p.spare.file != file:
			p.retire()
		case p.take():
			set.lastTaken = now
			if r.policy.urgent(set, now) {
				r.Changed()
			}
			return set, p
		default:
			r.failed(set, "it has ended")
		}
	}
	return set, nil
}

// end records that an evaluation has ended.
func (r *Runner) end(set *spareSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.policy.ended(now)
	if set == nil {
		return
	}
	set.lastUse = now
	if r.policy.early(set) {
		r.Changed()
	}
}

// usedSpare records whether an evaluation could use its spare process, and returns that. A process that was about to
// end when it was taken has evaluated nothing.
func (r *Runner) usedSpare(set *spareSet, used bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if used {
		set.worked()
	} else {
		r.failed(set, "it ended without reading its input")
	}
	return used
}

// Changed makes the Runner notice that Keep returns something else than before.
func (r *Runner) Changed() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Spares returns the number of spare processes.
func (r *Runner) Spares() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policy.kept
}

// Prepare starts spare processes of cmd before its first evaluation, if it gets any.
func (r *Runner) Prepare(cmd Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy.want(cmd, time.Now())
	r.Changed()
}

// Forget kills the spare processes of functions, which [Command.Function] names, and starts no further ones until an
// evaluation uses their commands again. It returns when the processes have ended. Evaluations continue.
func (r *Runner) Forget(which func(function string) bool) {
	r.mu.Lock()
	ending := r.policy.forget(which)
	for _, p := range ending {
		p.retire()
	}
	r.mu.Unlock()
	for _, p := range ending {
		<-p.exited
	}
}

// keepSpares starts and kills spare processes until ctx ends, and then kills all of them.
func (r *Runner) keepSpares(ctx context.Context) {
	for ctx.Err() == nil {
		todo := r.next()
		if todo.start != nil {
			r.start(todo.start)
			continue
		}
		r.wait(ctx, todo.wake)
	}
	r.mu.Lock()
	r.policy.cfg.Keep = func(string) int { return 0 }
	r.mu.Unlock()
	r.next()
	r.ends.Wait()
}

// next retires what is not needed, and returns what else to do.
func (r *Runner) next() plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	todo := r.policy.next(time.Now())
	for _, p := range todo.retire {
		p.retire()
	}
	return todo
}

// wait returns at the given time, when something has happened, or when ctx ends.
func (r *Runner) wait(ctx context.Context, until time.Time) {
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

// start starts a process and adds it to its set.
func (r *Runner) start(set *spareSet) {
	p, err := r.startSpare(set.cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed(set, err.Error())
		return
	}
	if set.forgotten {
		p.retire() // while it was started
	} else {
		r.policy.put(set, p)
	}
	r.ends.Go(func() { r.attend(set, p) })
}

// attend waits for the end of a process, and frees it unless an evaluation has taken it.
func (r *Runner) attend(set *spareSet, p *process) {
	<-p.exited
	p.spare.retire()
	if p.spare.inUse() {
		return
	}
	state, err := p.finish()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.policy.drop(set, p) {
		return // it was retired
	}
	why := outcome(state).Status
	if reason := p.killedFor(); reason != nil {
		err = reason
	}
	if err != nil {
		why = err.Error()
	}
	r.failed(set, why)
	r.Changed()
}

// failed records that a process was of no use. The caller holds mu.
func (r *Runner) failed(set *spareSet, why string) {
	wait := set.failed(time.Now())
	r.cfg.Log.Info("spare process ended before it was used",
		"path", set.cmd.Function(), "reason", why, "next_in", wait)
}

// maxSpareBytes is how much a spare process may write to stdout and to stderr each. A
// process that waits for its input has written a short greeting at most.
const maxSpareBytes = 64 << 10

var (
	errTalksBeforeInput = errors.New("it wrote more than a spare process may")
	errNotNeeded        = errors.New("it is not needed any more")
)

// spareState is the state of a process before its evaluation. The zero value is that of a
// process which was started for its evaluation: in use.
type spareState struct {
	state atomic.Int32
	file  fileID
	// input is the function's end of its stdin, kept to see what it has not read.
	input *os.File
}

// The states of a process. Only one change of stateSpare succeeds.
const (
	stateInUse int32 = iota // by an evaluation, to which it belongs
	stateSpare              // can be taken
	stateEnded              // must not be used any more
)

// startSpare starts a spare process of cmd. Its owner is the evaluation that takes it, or
// the pool if it ends before.
func (r *Runner) startSpare(cmd Command) (*process, error) {
	p := r.newProcess(cmd)
	p.spare.state.Store(stateSpare)
	p.spare.file, _ = identify(cmd) // before it starts: a file that changes meanwhile is another one
	if err := p.start(minBuffer); err != nil {
		return nil, err
	}
	return p, nil
}

// take makes the process the caller's, to evaluate. It fails for one that is dead or
// about to be.
func (p *process) take() bool {
	select {
	case <-p.exited:
		return false
	default:
	}
	return p.spare.change(stateInUse)
}

// retire ends the process unless it was taken.
func (p *process) retire() {
	if p.spare.retire() {
		p.kill(errNotNeeded)
	}
}

// retire makes sure that a spare process is not taken any more. It reports whether the
// process was a spare one.
func (s *spareState) retire() bool { return s.change(stateEnded) }

func (s *spareState) change(state int32) bool { return s.state.CompareAndSwap(stateSpare, state) }

func (s *spareState) inUse() bool { return s.state.Load() == stateInUse }

// tooMuch reports whether the process is a spare one and has written too much for that. It
// is not one any more then.
func (s *spareState) tooMuch(size int) bool { return size > maxSpareBytes && s.retire() }

// untouched reports whether the function has read nothing of the written bytes, which is how many
// were written to it. It is known only of spare processes.
func (s *spareState) untouched(written int) bool {
	if s.input == nil {
		return false
	}
	raw, err := s.input.SyscallConn()
	if err != nil {
		return false
	}
	var unread int
	var readErr error
	if err := raw.Control(func(fd uintptr) { unread, readErr = unix.IoctlGetInt(int(fd), unreadBytes) }); err != nil {
		return false
	}
	return readErr == nil && unread == written
}

// fileID distinguishes a program's file from another one that takes its place, or that it is
// changed into.
type fileID struct {
	device, inode   uint64
	size            int64
	modified, moved syscall.Timespec
}

// identify returns the id of a command's program; ok is false if there is none.
func identify(cmd Command) (id fileID, ok bool) {
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
