// SPDX-License-Identifier: Apache-2.0

// Package fnproc runs KRM functions as processes: input on stdin, output on stdout, log on stderr, one process per
// evaluation.
//
// A function can neither block its runner nor outlive its evaluation. It leads its own session and process group. The
// runner kills the group when the function exits, the context is canceled or a limit is exceeded. The [Reaper] kills
// descendants that left the group. As with Porch's wrapper server, an evaluation ends when the main process has exited
// and all processes have closed the output. Otherwise a truncated list could pass as a complete list.
//
// The runner sets no parent-death signal for functions, only for launchers of sandboxes. Linux sends this signal when
// the thread that forked exits, and Go stops threads at any time, so a healthy function could be killed. If the runner
// is the first process of a container, the kernel kills all processes of the container with it anyway.
//
// The package is for Linux. It also works on macOS for development, but there it neither kills orphans nor confines
// functions.
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

// Command is a function's program, or a launcher that runs the function, with arguments and environment.
type Command struct {
	// Path is the program's file. It is not looked up in PATH. A relative path is relative to Dir.
	Path string
	// Args contains the arguments, without the program's name as the first argument.
	Args []string
	// Env is the complete environment, as KEY=value. The function inherits no variables of this program.
	Env []string
	// Dir is the working directory. Empty means the runner's working directory.
	Dir string
	// Readable contains further files and directories that a confined function may read.
	Readable []string
	// Network allows a confined function to use the network.
	Network bool
	// Shared allows the function to use directories such as /tmp, which the Confiner shares between functions. The runner
	// starts no processes in advance for such a command.
	Shared bool
	// Launch, if not nil, describes a launcher such as bubblewrap, which runs the function in a sandbox. The runner
	// does not confine launchers.
	Launch *Launch
	// MaxOutput is the maximum number of bytes that the function may write to stdout. MaxLog is the maximum number of
	// bytes of the function's stderr that the runner keeps. The runner removes the middle of a longer log.
	MaxOutput, MaxLog int64
}

// Outcome is the result of a process. The caller owns the byte slices.
type Outcome struct {
	// Output and Log contain the bytes written to stdout and stderr. After an error of Run, they contain the bytes
	// written before the error.
	Output, Log []byte
	// ExitCode is the main process's exit code. It is -1 if the process was killed by a signal.
	ExitCode int
	// Signal is the signal that killed the main process, or zero if it exited.
	Signal syscall.Signal
	// Status describes the end of the main process in the words of os/exec: "exit status 1", "signal: killed".
	Status string
	// OutOfMemory and OutOfProcesses are true if the [Watch] killed the function because the container had almost run out
	// of memory or processes.
	OutOfMemory, OutOfProcesses bool
	// Prefork states whether the evaluation used a process that was started in advance.
	Prefork Prefork
}

// Config configures a [Runner]. With the zero value, functions are not confined and no processes are started in
// advance.
type Config struct {
	// Reaper kills orphans, the processes that functions leave behind. It is optional.
	Reaper *Reaper
	// Confiner restricts the files, addresses and processes that functions can reach. It is optional.
	Confiner *confine.Confiner
	// Watch kills functions before they use up the container's memory or processes. It is optional.
	Watch *Watch
	// Keep returns the number of processes to start in advance for the function with a given name (see
	// [Command.Function]). If Keep is nil, the number is 0. The Runner calls Keep often and concurrently. Keep must not
	// call the Runner.
	Keep func(function string) int
	// Total is the maximum number of processes that were started in advance, for all functions together.
	Total int
	// Unused is the time after which the Runner kills processes that it started in advance if their command is not used.
	Unused time.Duration
	// Busy is the number of concurrent evaluations at which the Runner stops starting processes in advance, because the
	// evaluations need the processors. Zero means one evaluation per processor.
	Busy int
	// Log receives a line for each process started in advance that exited before it was used. It is optional.
	Log *slog.Logger
}

// Runner runs functions. It is safe for concurrent use.
//
// A Runner can keep spare processes, which were started in advance and wait for their input. This saves the
// start-up time of a function. Each spare process serves a single evaluation, so that evaluations stay isolated. A
// command gets spare processes after its first evaluation or after Prepare, and new ones after its program's file
// has changed.
//
// Bytes that a spare process writes before it gets its input become part of its evaluation's output or log. A spare
// process that writes more than 64 KiB is killed. If a spare process exits before its use, the delay before the
// next start doubles.
type Runner struct {
	cfg   Config
	nudge chan struct{} // wakes keepSpares; of size one, because keepSpares checks all sets
	ends  sync.WaitGroup

	mu     sync.Mutex
	policy *preforkPolicy
}

// NewRunner returns a Runner. Callers must call [Runner.Maintain], which starts processes in advance, kills processes
// that functions leave behind, and finally removes temporary directories.
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

// Run writes stdin to a new process of cmd, or to a process that was started in advance. It returns after the process
// has exited. Run does not modify stdin. The function need not read its input to the end.
//
// If a function exits with a non-zero code or is killed by a signal that Run did not send, Run returns the function's
// Outcome without an error. Errors are a [*StartError], a [*LaunchError], a [*LimitError], a [*StoppedError], or a
// failure to wait for the process. With a LimitError or a StoppedError, the Outcome contains the log up to that point.
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
		err = p.launcher.startError(out)
	}
	if set != nil {
		out.Prefork = PreforkMiss
	}
	return out, err
}

// Maintain starts processes in advance and kills processes that functions left behind, until ctx is canceled. All
// evaluations should end earlier. When Maintain returns, no unused process and no temporary directory is left.
func (r *Runner) Maintain(ctx context.Context) {
	reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	if r.cfg.Reaper != nil {
		tasks.Go(func() { r.cfg.Reaper.Run(reaping) })
	}
	r.keepSpares(ctx)
	stop() // must follow the last spare processes, to kill their orphans
	tasks.Wait()
	r.cfg.Confiner.Close()
}
