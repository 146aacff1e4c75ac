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
	"sync"
	"syscall"

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
	// OutOfMemory is whether the [MemoryWatch] killed it.
	OutOfMemory bool
	// Prefork is whether the process was started before its evaluation.
	Prefork Prefork
}

// Runner runs functions. The zero value is ready to use, and one Runner serves any
// number of goroutines.
type Runner struct {
	// Reaper, if not nil, ends orphans.
	Reaper *Reaper
	// Confiner, if not nil, confines functions.
	Confiner *confine.Confiner
	// Memory, if not nil, kills functions before there is no memory left.
	Memory *MemoryWatch
	// Prefork, if not nil, has spare processes.
	Prefork *PreforkPool
}

// Run starts cmd, or takes a spare process of it, writes stdin to it, and returns when it
// has ended. It does not modify stdin. Whether the function
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
	claim := r.Prefork.begin(cmd, stdin)
	defer claim.finish()
	if claim.process != nil {
		out, err := claim.process.evaluate(ctx, stdin)
		if err != nil || !claim.process.untouched {
			claim.worked()
			out.Prefork = PreforkHit
			return out, err
		}
		claim.failed() // it was about to end when it was taken: nothing was evaluated
	}
	p := r.newProcess(cmd)
	if err := p.start(len(stdin) + minBuffer); err != nil {
		return Outcome{}, err
	}
	out, err := p.evaluate(ctx, stdin)
	if err == nil {
		err = cmd.Launch.startError(out)
	}
	out.Prefork = claim.without()
	return out, err
}

// Prepare has spare processes of cmd started before its first evaluation, if it gets any.
func (r Runner) Prepare(cmd Command) { r.Prefork.prepare(cmd) }

// Forget ends the spare processes of functions, which [Command.Function] names, before what they use goes. Evaluations
// go on.
func (r Runner) Forget(which func(function string) bool) { r.Prefork.forget(which) }

// Maintain does what goes on beside evaluations until ctx ends. No spare process and no
// temporary directory is left then. The evaluations should be over by that time.
func (r Runner) Maintain(ctx context.Context) {
	reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	if r.Reaper != nil {
		beside.Go(func() { r.Reaper.Run(reaping) })
	}
	if r.Confiner != nil {
		beside.Go(func() { r.Confiner.Run(reaping) })
	}
	r.Prefork.run(ctx, r)
	<-ctx.Done()
	stop() // last, for what the last processes leave behind
	beside.Wait()
	r.Confiner.Close()
}
