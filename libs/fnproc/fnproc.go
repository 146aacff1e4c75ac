// Package fnproc runs KRM functions as processes: input on stdin, output on stdout,
// log on stderr, one process per evaluation.
//
// A function cannot hang its runner, nor outlive its evaluation. It leads a process
// group of its own, which is killed as a whole when the function ends, when the
// context ends and when a limit is passed. Like a container, an evaluation ends with
// its main process: what that process has written is read to the last byte, and
// pipes that some descendant still holds open are not waited for. Descendants that
// left the group are the business of the [Reaper].
//
// Functions get no parent-death signal. Linux sends it when the thread that forked
// ends, and Go ends threads when it likes, so that a healthy function could be
// killed; and where the runner is the first process of a container, the kernel kills
// everything with it anyway.
//
// The package needs Linux.
package fnproc

import (
	"context"
	"sync"
	"syscall"
)

// Command says how to start a function.
type Command struct {
	// Path is the program's file. It is not searched in PATH; a relative path is
	// relative to Dir.
	Path string
	// Args are the arguments without the program itself.
	Args []string
	// Env is the whole environment as KEY=value. Nothing is inherited: nil is an
	// empty environment.
	Env []string
	// Dir is the working directory; empty means the runner's own.
	Dir string
	// MaxOutput and MaxLog are the most bytes that the function may write to stdout
	// and to stderr. Zero allows none.
	MaxOutput, MaxLog int64
}

// Outcome is what a function left behind. The caller owns the byte slices.
type Outcome struct {
	// Output and Log are what it wrote to stdout and to stderr. They hold what there
	// was until then if Run returns an error.
	Output, Log []byte
	// ExitCode is the main process's exit code, -1 if a signal ended it.
	ExitCode int
	// Signal is the signal that ended the main process, zero if it exited by itself.
	Signal syscall.Signal
	// Status says how the main process ended, in the words of os/exec: "exit status
	// 1", "signal: killed".
	Status string
	// Prefork says whether the process was started before its evaluation.
	Prefork Prefork
}

// Runner runs functions. The zero value is ready to use, and one Runner serves any
// number of goroutines.
type Runner struct {
	// Reaper, if not nil, is told of each process and each evaluation.
	Reaper *Reaper
	// Stock, if not nil, has processes that were started before.
	Stock *Stock
}

// Run starts cmd, or takes a process of it that was started before, writes stdin to
// it, and returns when it has ended. It does not modify stdin. Whether the function
// reads its input to the end is its own affair.
//
// A function that exits non-zero, or dies by a signal that Run did not send, is an
// Outcome and no error. Errors are a [*StartError], a [*LimitError], a
// [*StoppedError], or a failure to wait for the process; with the two in the middle
// the Outcome still has the log so far.
func (r Runner) Run(ctx context.Context, cmd Command, stdin []byte) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{}, stopped(ctx)
	}
	visit := r.Stock.begin(cmd, stdin)
	defer visit.end()
	if visit.process != nil {
		out, err := visit.process.evaluate(ctx, stdin)
		if err != nil || !visit.process.untouched {
			visit.worked()
			out.Prefork = PreforkHit
			return out, err
		}
		visit.failed() // it was about to end when it was taken: nothing was evaluated
	}
	p := newProcess(cmd, r.Reaper)
	if err := p.start(len(stdin) + minBuffer); err != nil {
		return Outcome{}, err
	}
	out, err := p.evaluate(ctx, stdin)
	out.Prefork = visit.without()
	return out, err
}

// Prepare has processes of cmd started before its first evaluation, if any are to be
// kept of it.
func (r Runner) Prepare(cmd Command) { r.Stock.prepare(cmd) }

// Maintain does what goes on beside evaluations, for the Reaper and the Stock, until
// ctx ends. No process that was kept started is left then. The evaluations should be
// over by that time.
func (r Runner) Maintain(ctx context.Context) {
	reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var reaper sync.WaitGroup
	if r.Reaper != nil {
		reaper.Go(func() { r.Reaper.Run(reaping) })
	}
	r.Stock.run(ctx, r.Reaper)
	<-ctx.Done()
	stop() // last, for what the last processes leave behind
	reaper.Wait()
}
