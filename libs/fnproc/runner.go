// SPDX-License-Identifier: Apache-2.0

// Package fnproc runs KRM functions as processes: input on stdin, output on stdout,
// log on stderr, one process per evaluation.
//
// A function cannot hang its runner, nor outlive its evaluation. It leads a session and
// a process group of its own, which is killed as a whole when the function ends, when the
// context ends and when a limit is passed. Like Porch's wrapper server, an evaluation ends
// when its main process has exited and its output is closed: a descendant that holds it may still
// write to it, and a list that is cut must not pass as a whole one. Descendants that
// left the group are ended by the [Reaper].
//
// Functions get no parent-death signal. Linux sends it when the thread that forked
// ends, and Go ends threads when it likes, so that a healthy function could be
// killed; and where the runner is the first process of a container, the kernel kills
// everything with it anyway.
//
// The package is for Linux. On macOS, where developers work, orphans remain, and functions run
// without what only Linux has to hold them back.
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

// Command is a function's program and how to start it.
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
	// Shared allows the function to use the shared directories of the Confiner. The command has no spare processes then.
	Shared bool
	// Launch is set if the program is a launcher of sandboxes, which confines the function itself.
	Launch *Launch
	// MaxOutput is the maximum number of bytes that the function may write to stdout. MaxLog is how many bytes are
	// kept of what it writes to stderr: of more, the middle is left out.
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
	// Status is how the main process ended, in the words of os/exec: "exit status
	// 1", "signal: killed".
	Status string
	// OutOfMemory and OutOfProcesses are true if the [Watch] killed the function because the container had no memory, or
	// no processes, left.
	OutOfMemory, OutOfProcesses bool
	// Prefork is whether the process was started before its evaluation.
	Prefork Prefork
}

// Config configures a [Runner]. With the zero value, functions are not confined and there are no spare processes.
type Config struct {
	// Reaper kills orphans; nil for none.
	Reaper *Reaper
	// Confiner confines functions; nil for none.
	Confiner *confine.Confiner
	// Watch kills functions before the container is exhausted; nil for none.
	Watch *Watch
	// Keep returns the number of spare processes of a function, which [Command.Function] names; nil for none. It is
	// called often and concurrently, and must not call the Runner.
	Keep func(function string) int
	// Total is the maximum number of spare processes of all functions.
	Total int
	// Unused is how long the spare processes of a command are kept after its last evaluation.
	Unused time.Duration
	// Busy is the number of concurrent evaluations from which on no spare process is started: evaluations need the
	// processors more. The default is one per processor.
	Busy int
	// Log gets a line for each spare process that ended before it was used; nil for none.
	Log *slog.Logger
}

// Runner runs functions. It is safe for concurrent use.
//
// It can keep spare processes, which were started and wait for their input. Each is used for one evaluation and never
// again, so that only the time that a function takes to start is saved, and evaluations are as separate as without.
//
// Spare processes are kept of a command that is in use or was prepared for. What a spare process writes before it gets
// its input is part of its evaluation's output and log, up to 64 KiB; a process that writes more is killed. A process
// that ended before it was used is never handed out, and the next start backs off with each such failure. If the
// program's file has changed, its spare processes are killed at the command's next evaluation.
type Runner struct {
	cfg   Config
	nudge chan struct{} // of size one: keepSpares checks everything
	ends  sync.WaitGroup

	mu     sync.Mutex
	policy *preforkPolicy
}

// NewRunner returns a Runner. [Runner.Maintain] has to run for spare processes, orphans and temporary directories.
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

// Run starts cmd, or takes a spare process of it, writes stdin to it, and returns when it
// has ended. It does not modify stdin. Whether the function
// reads its input to the end is its own affair.
//
// A function that exits non-zero, or dies by a signal that Run did not send, is an
// Outcome and no error. Errors are a [*StartError], a [*LimitError], a
// [*StoppedError], or a failure to wait for the process; with the two in the middle
// the Outcome still has the log so far.
func (r *Runner) Run(ctx context.Context, cmd Command, stdin []byte) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{}, stopped(ctx)
	}
	set, spare := r.begin(cmd, stdin)
	defer r.end(set)
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

// Maintain keeps spare processes, kills orphans and removes temporary directories until ctx ends. Then no spare process
// and no temporary directory is left. All evaluations should have ended by that time.
func (r *Runner) Maintain(ctx context.Context) {
	reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	if r.cfg.Reaper != nil {
		tasks.Go(func() { r.cfg.Reaper.Run(reaping) })
	}
	r.keepSpares(ctx)
	stop() // last, for what the last processes leave behind
	tasks.Wait()
	r.cfg.Confiner.Close()
}
