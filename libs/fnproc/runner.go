// SPDX-License-Identifier: Apache-2.0

// Package fnproc runs KRM functions as processes: input on stdin, output on stdout, log on stderr, one process per
// evaluation.
//
// A function cannot block its runner, nor outlive its evaluation. It leads its own session and process group, which is
// killed as a whole when the function exits, when the context is canceled and when a limit is exceeded. As with
// Porch's wrapper server, an evaluation ends after its main process has exited and its output was closed: a descendant
// may still write to the output, and a truncated list must not pass as a whole list. The [Reaper] kills descendants
// that left the group.
//
// Functions get no parent-death signal. Linux sends it when the thread that forked exits, and Go stops threads at any
// time, so that a healthy function could be killed. If the runner is the first process of a container, the kernel
// kills everything with it anyway.
//
// The package is for Linux. On macOS, for development, orphans remain, and functions are confined less.
package fnproc

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/confine"
)

// Command is a function's program, with its arguments and environment.
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
	// Readable are files and directories that the function may read in addition, where functions are confined.
	Readable []string
	// Network allows the function to use the network, where functions are confined.
	Network bool
	// Shared allows the function to use the shared directories of the Confiner. Such a command gets no spare processes.
	Shared bool
	// Launch is set if the program is a launcher of sandboxes, so that the runner does not confine it.
	Launch *Launch
	// MaxOutput is the maximum number of bytes that the function may write to stdout. MaxLog is the number of bytes of
	// stderr to keep: of longer logs, the middle is left out.
	MaxOutput, MaxLog int64
}

// Outcome is the result of a process. The caller owns the byte slices.
type Outcome struct {
	// Output and Log are the bytes written to stdout and stderr, up to the error if Run returns an error.
	Output, Log []byte
	// ExitCode is the main process's exit code, -1 if it was killed by a signal.
	ExitCode int
	// Signal is the signal that killed the main process, or zero if it exited.
	Signal syscall.Signal
	// Status is the state of the main process in the words of os/exec: "exit status 1", "signal: killed".
	Status string
	// OutOfMemory and OutOfProcesses are true if the [Watch] killed the function because the container ran out of memory,
	// or of processes.
	OutOfMemory, OutOfProcesses bool
	// Prefork states whether the process was started before its evaluation.
	Prefork Prefork
}

// Config configures a [Runner]. With the zero value, functions are not confined and there are no spare processes.
type Config struct {
	// Reaper kills orphans. It is optional.
	Reaper *Reaper
	// Confiner confines functions. It is optional.
	Confiner *confine.Confiner
	// Watch kills functions before the container is exhausted. It is optional.
	Watch *Watch
	// Keep returns the number of spare processes of a function, by [Command.Function]. The default is none. The Runner
	// calls it often and concurrently; it must not call the Runner.
	Keep func(function string) int
	// Total is the maximum number of spare processes of all functions.
	Total int
	// Unused is the time for which the spare processes of a command are kept after its last evaluation.
	Unused time.Duration
	// Busy is the number of concurrent evaluations from which on no spare process is started: evaluations need the
	// processors more. The default is one per processor.
	Busy int
	// Log gets a line for each spare process that exited unused. It is optional.
	Log *slog.Logger
}

// Runner runs functions. It is safe for concurrent use.
//
// It can keep spare processes, which were started and wait for their input. Each serves a single evaluation, so that
// only the start-up time of a function is saved, and evaluations stay isolated.
//
// A command gets spare processes after its first use or Prepare. The output of a spare process before its input, up to
// 64 KiB, is part of its evaluation's output and log; a process that writes more is killed. A process that exited
// early is never used, and the next start backs off with each such failure. If the program's file changes, its spare
// processes are killed at the command's next evaluation.
type Runner struct {
	cfg   Config
	nudge chan struct{} // of size one, because keepSpares checks everything
	ends  sync.WaitGroup

	mu     sync.Mutex
	policy *preforkPolicy
}

// NewRunner returns a Runner. Callers must run [Runner.Maintain] for spare processes, orphans and temporary
// directories.
func NewRunner(cfg Config) *Runner {
	if cfg.Keep == nil {
		cfg.Keep = func(string) int { return 0 }
	}
	if cfg.Busy == 0 {
		cfg.Busy = runtime.GOMAXPROCS(0)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{cfg: cfg, nudge: make(chan struct{}, 1), policy: newPolicy(cfg)}
}

// Run starts cmd, or uses a spare process, writes stdin to it, and returns after it has exited. It does not modify
// stdin. The function need not read its input to the end.
//
// A function that exits non-zero, or is killed by a signal that Run did not send, is an Outcome and no error. Errors
// are a [*StartError], a [*LimitError], a [*StoppedError], or a failure to wait for the process; with a LimitError or
// a StoppedError the Outcome contains the log so far.
func (r *Runner) Run(ctx context.Context, cmd Command, stdin []byte) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{}, stoppedError(ctx)
	}
	set, spare := r.beginEvaluation(cmd, stdin)
	defer r.endEvaluation(set)
	if spare != nil {
		out, err := spare.evaluate(ctx, stdin)
		if r.usedSpare(set, err != nil || !spare.untouched) {
			out.Prefork = PreforkHit
			return out, err
		}
	}
	p := r.newProcess(cmd)
	if err := p.start(len(stdin) + minBuffer); err != nil {
		return Outcome{}, err
	}
	out, err := p.evaluate(ctx, stdin)
	if err == nil {
		err = cmd.Launch.startError(out)
	}
	if set != nil {
		out.Prefork = PreforkMiss
	}
	return out, err
}

// Maintain keeps spare processes, kills orphans and removes temporary directories until ctx is canceled. When it
// returns, no spare process and no temporary directory is left. All evaluations should have finished before.
func (r *Runner) Maintain(ctx context.Context) {
	reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	if r.cfg.Reaper != nil {
		tasks.Go(func() { r.cfg.Reaper.Run(reaping) })
	}
	r.keepSpares(ctx)
	stop() // after the last processes, for their orphans
	tasks.Wait()
	r.cfg.Confiner.Close()
}
