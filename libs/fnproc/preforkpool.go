// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// PreforkConfig is what a PreforkPool works with.
type PreforkConfig struct {
	// Keep returns how many processes to keep started of a function, which [Command.Function]
	// names; after that many and more evaluations at a time, up to [MostSpares]. It is asked often, by
	// any goroutine, and must not call the pool.
	Keep func(function string) int
	// Spacious reports whether there is memory for more than Keep returns; nil is always. It must not call
	// the pool.
	Spacious func() bool
	// Total is how many to keep of all programs together; zero is none.
	Total int
	// Unused is how long to keep processes of a command that is not in use.
	Unused time.Duration
	// Busy is how many evaluations have to run for no process to be started, nor right
	// after: they need the processors more. Zero is one for each processor.
	Busy int
	// Log gets a line for each process that ended before it was used; nil is for none.
	Log *slog.Logger
}

// PreforkPool is spare processes: they were started and wait for their input. Each is used for one
// evaluation and never again, so that only the time that a function takes to start is
// saved, and evaluations are as separate as without.
//
// A process is kept of a command that is in use or was prepared for. What it writes
// before it has its input is part of its evaluation's output and log, and of their caps,
// up to 64 KiB; one that writes more is ended. A process that ended before it was used
// is never handed out, and the next start backs off with each such failure. If the program's
// file has changed, the spare processes are ended at the command's next evaluation.
type PreforkPool struct {
	cfg   PreforkConfig
	nudge chan struct{} // of size one: run checks everything
	ends  sync.WaitGroup

	mu     sync.Mutex
	policy *preforkPolicy
}

// NewPreforkPool returns an empty PreforkPool. [Runner.Maintain] fills it.
func NewPreforkPool(cfg PreforkConfig) *PreforkPool {
	if cfg.Busy == 0 {
		cfg.Busy = runtime.GOMAXPROCS(0)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &PreforkPool{cfg: cfg, nudge: make(chan struct{}, 1), policy: newPolicy(cfg)}
}

// Changed makes the pool notice that Keep returns something else than before.
func (pool *PreforkPool) Changed() {
	select {
	case pool.nudge <- struct{}{}:
	default:
	}
}

// Waiting returns how many processes wait for their evaluations.
func (pool *PreforkPool) Waiting() int {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return pool.policy.kept
}

// prepare records that cmd will be in use.
func (pool *PreforkPool) prepare(cmd Command) {
	if pool == nil {
		return
	}
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.policy.want(cmd, time.Now())
	pool.Changed()
}

// forget ends the spare processes of functions, and starts no further ones until an evaluation uses their commands
// again. It returns when those have ended that had been started.
func (pool *PreforkPool) forget(which func(function string) bool) {
	if pool == nil {
		return
	}
	pool.mu.Lock()
	ending := pool.policy.forget(which)
	for _, p := range ending {
		p.retire()
	}
	pool.mu.Unlock()
	for _, p := range ending {
		<-p.exited
	}
}

// relieve ends the spare processes that only a peak has kept: there is no memory for them. It returns them with how
// many bytes each had.
func (pool *PreforkPool) relieve() map[*process]int64 {
	if pool == nil {
		return nil
	}
	pool.mu.Lock()
	defer pool.mu.Unlock()
	ending := make(map[*process]int64)
	for _, p := range pool.policy.relieve() {
		ending[p] = residentTree(p.Pid)
		p.retire()
	}
	return ending
}

// run starts and ends processes until ctx ends, and then ends all spare ones.
func (pool *PreforkPool) run(ctx context.Context, runner Runner) {
	if pool == nil {
		return
	}
	for ctx.Err() == nil {
		todo := pool.next()
		if todo.start != nil {
			pool.start(todo.start, runner)
			continue
		}
		pool.wait(ctx, todo.wake)
	}
	pool.mu.Lock()
	pool.policy.cfg.Keep = func(string) int { return 0 }
	pool.mu.Unlock()
	pool.next()
	pool.ends.Wait()
}

// next retires what is not needed, and returns what else to do.
func (pool *PreforkPool) next() plan {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	todo := pool.policy.next(time.Now())
	for _, p := range todo.retire {
		p.retire()
	}
	return todo
}

// wait returns at the given time, when something has happened, or when ctx ends.
func (pool *PreforkPool) wait(ctx context.Context, until time.Time) {
	var timeUp <-chan time.Time
	if !until.IsZero() {
		timeUp = time.After(time.Until(until))
	}
	select {
	case <-ctx.Done():
	case <-pool.nudge:
	case <-timeUp:
	}
}

// start starts a process and adds it to its set.
func (pool *PreforkPool) start(set *spareSet, runner Runner) {
	p, err := runner.startSpare(set.cmd)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if err != nil {
		pool.failed(set, err.Error())
		return
	}
	if set.forgotten {
		p.retire() // while it was started
	} else {
		pool.policy.put(set, p)
	}
	pool.ends.Go(func() { pool.attend(set, p) })
}

// attend waits for the end of a process, and frees it unless an evaluation has taken it.
func (pool *PreforkPool) attend(set *spareSet, p *process) {
	<-p.exited
	p.spare.retire()
	if p.spare.inUse() {
		return
	}
	state, err := p.finish()
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if !pool.policy.drop(set, p) {
		return // it was retired
	}
	why := outcome(state).Status
	if reason := p.killedFor(); reason != nil {
		err = reason
	}
	if err != nil {
		why = err.Error()
	}
	pool.failed(set, why)
	pool.Changed()
}

// failed records that a process was of no use. The caller holds mu.
func (pool *PreforkPool) failed(set *spareSet, why string) {
	wait := set.failed(time.Now())
	pool.cfg.Log.Info("spare process ended before it was used",
		"path", set.cmd.Function(), "reason", why, "next_in", wait)
}
