// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/descriptors"
)

// process is a function that was started, with our ends of its pipes. What it writes
// is gathered from its start on.
type process struct {
	*os.Process
	cmd                   Command
	reaper                *Reaper
	confiner              *confine.Confiner
	watch                 *Watch
	temp                  *confine.TempDir // nil without
	tempWatch             tempWatch
	stdin, stdout, stderr *os.File
	arguments             *os.File // those of its launcher are written to it; nil without
	output, log           *collector
	background            sync.WaitGroup // serving the pipes, and the check of temp
	exited                chan struct{}  // closed when the main process has ended, which is unreaped then
	waitErr               error          // of waiting for that
	handle                *os.File       // its pidfd, nil if the kernel has none
	spare                 spareState
	fed                   int  // bytes of input written
	untouched             bool // it ended without having read any of them

	mu     sync.Mutex // of what follows
	reaped bool       // the ids may be another's
	reason error      // why it was killed, nil if it was not
	// exhausted is what the container had run out of when the watch killed the process. It is no reason: the function
	// has failed.
	exhausted resource
}

func (r *Runner) newProcess(cmd Command) *process {
	return &process{
		cmd: cmd, reaper: r.cfg.Reaper, confiner: r.cfg.Confiner, watch: r.cfg.Watch,
		exited: make(chan struct{}),
	}
}

// start starts the process as the leader of a new session; size is how many bytes of
// output are expected. If it returns no error, the caller has to call finish, which frees
// everything.
//
// A session costs a small program some of its time, since Linux makes a scheduling group
// for each. But a process group is not enough: a function can move to the program's own.
func (p *process) start(size int) error {
	pidfd := -1 // stays so on a kernel that has none
	theirs, err := p.openPipes()
	defer closeAll(theirs)
	if err == nil {
		err = p.fork(theirs, &pidfd)
	}
	if err != nil {
		p.closePipes()
		return startError(p.cmd, err)
	}
	if !p.spare.inUse() {
		p.spare.input, theirs[0] = theirs[0], nil
	}
	p.output = newCollector("output", p.stdout, p.cmd.MaxOutput, size)
	p.log = newCollector("log", p.stderr, p.cmd.MaxLog, minBuffer)
	p.log.cut = true
	for _, c := range []*collector{p.output, p.log} {
		p.background.Go(func() { p.gather(c) })
	}
	functions.addOutput(p.stdout)
	p.watchTempDir()
	p.handle = newHandle(pidfd)
	go p.awaitExit()
	return nil
}

// fork starts the process with these ends of its pipes, and has pidfd filled in.
func (p *process) fork(theirs []*os.File, pidfd *int) (err error) {
	inherited, arguments, err := p.cmd.Launch.open()
	if err != nil {
		return err
	}
	p.arguments = arguments
	defer closeAll(inherited)
	attr := &os.ProcAttr{
		Dir: p.cmd.Dir, Files: append(theirs[:3:3], inherited...),
		Sys: attributes(p.cmd.Launch, pidfd),
	}
	args := append([]string{p.cmd.Path}, p.cmd.Args...)
	function := confine.Function{
		Path: p.cmd.Path, Dir: p.cmd.Dir, Readable: p.cmd.Readable, Network: p.cmd.Network, Shared: p.cmd.Shared,
	}
	p.Process, p.temp, err = p.confiner.Start(function, p.cmd.Env, func(env []string) (started *os.Process, err error) {
		attr.Env = append([]string{}, env...) // nil would mean our own
		closed := p.cmd.Launch.starter().run(func() {
			started, err = withSlack(func() (*os.Process, error) {
				return functions.start(func() (*os.Process, error) {
					descriptors.CloseOnExec()
					return os.StartProcess(p.cmd.Path, args, attr)
				})
			})
		})
		return started, errors.Join(closed, err)
	})
	if err != nil {
		return err
	}
	if err := p.cmd.Launch.instruct(p.Pid, arguments, &p.background); err != nil {
		p.kill(err)
		_, _ = p.reap()
		p.handle = newHandle(*pidfd) // which is closed
		p.temp.RemoveLater()
		return err
	}
	return nil
}

// openPipes makes the three pipes and returns the function's ends, which the caller
// has to close even if there is an error.
func (p *process) openPipes() (theirs []*os.File, err error) {
	theirs = make([]*os.File, 3)
	if theirs[0], p.stdin, err = os.Pipe(); err != nil {
		return theirs, err
	}
	if p.stdout, theirs[1], err = os.Pipe(); err != nil {
		return theirs, err
	}
	if p.stderr, theirs[2], err = os.Pipe(); err != nil {
		return theirs, err
	}
	return theirs, p.cmd.Launch.own(theirs)
}

func (p *process) closePipes() {
	closeAll([]*os.File{p.stdin, p.stdout, p.stderr, p.arguments, p.spare.input, p.handle})
}

// closeAll closes pipes. It ignores errors, since they need no action: some pipes are nil
// or closed already.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// gather has c read its pipe, and ends the process if that fails.
func (p *process) gather(c *collector) {
	if err := c.gather(p.spare.tooMuch); err != nil {
		p.spare.retire()
		p.kill(err)
	}
}

// awaitExit returns when the main process has ended. It leaves it unreaped, so that its
// pid, which is also the group's id, stays taken.
func (p *process) awaitExit() {
	defer close(p.exited)
	if !awaitHandle(p.handle) {
		p.waitErr = awaitEnd(p.Pid)
	}
}

// kill kills the process. The first reason counts.
func (p *process) kill(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == nil {
		p.reason = reason
	}
	p.killLocked()
}

// killedFor returns the reason that kill was given, nil if it was not called.
func (p *process) killedFor() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// killLocked kills the main process, which may have left its group, and what is left of the
// group. The caller holds mu: after reaping, the ids may be another's.
func (p *process) killLocked() {
	if p.reaped {
		return
	}
	_ = unix.Kill(p.Pid, unix.SIGKILL)
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
}

// finish frees everything of a process that has exited, and returns how it ended. It
// is called once, by the owner of the process.
func (p *process) finish() (*os.ProcessState, error) {
	p.mu.Lock()
	p.killLocked() // what is left of the group
	p.mu.Unlock()
	p.interrupt()
	p.unwatchTempDir()
	p.background.Wait()
	functions.removeOutput(p.stdout)
	p.untouched = p.spare.untouched(p.fed)
	state, err := p.reap()
	p.closePipes()
	p.temp.RemoveLater()
	if p.waitErr != nil {
		err = p.waitErr
	}
	return state, err
}

// logPatience is how long the log of a function may be open after its output has ended.
const logPatience = 2 * time.Second

// awaitOutput waits until all processes that can write to the output of a function that has exited have closed
// it: a list that was cut must not pass as a whole one. It kills them when ctx ends.
func (p *process) awaitOutput(ctx context.Context) {
	select {
	case <-p.output.ended:
	default:
		select { // seldom: what has ended costs no more than this
		case <-p.output.ended:
		case <-ctx.Done():
			p.kill(&StoppedError{Err: ctx.Err(), Cause: context.Cause(ctx), OutputHeld: true})
			return
		}
	}
	select {
	case <-p.log.ended:
	default:
		patience := time.NewTimer(logPatience)
		defer patience.Stop()
		select {
		case <-p.log.ended:
		case <-ctx.Done():
		case <-patience.C:
		}
	}
}

// interrupt ends writes to the function, and waiting for what it writes.
func (p *process) interrupt() {
	past := time.Unix(1, 0)
	_ = p.stdin.SetWriteDeadline(past)
	_ = p.arguments.SetWriteDeadline(past)
	_ = p.stdout.SetReadDeadline(past)
	_ = p.stderr.SetReadDeadline(past)
}

// reap frees the process's entry in the kernel's table and returns how it ended.
func (p *process) reap() (*os.ProcessState, error) {
	defer p.reaper.evaluationEnded()
	defer functions.forget(p.Pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	return p.Wait()
}

// minBuffer is the first size of a buffer about which nothing is known, in bytes.
const minBuffer = 4 << 10

// evaluate feeds stdin to the process, waits for its end and frees everything. It can
// be called once.
func (p *process) evaluate(ctx context.Context, stdin []byte) (Outcome, error) {
	p.hurryTempDir()
	p.watch.add(p)
	defer p.watch.remove(p)
	stopKilling := context.AfterFunc(ctx, func() { p.kill(stopped(ctx)) })
	p.output.expect(len(stdin) + minBuffer)
	enlarge(len(stdin), p.stdin, p.stdout)
	p.feed(stdin)
	<-p.exited
	switch {
	case !stopKilling():
		p.kill(stopped(ctx)) // which may not have happened yet
	case p.killedFor() == nil && p.exhaustedBy() == nothing:
		p.awaitOutput(ctx)
	}
	state, err := p.finish()

	out := outcome(state)
	p.cmd.Launch.translate(&out)
	out.Output, out.Log = p.output.buf, p.log.buf
	out.OutOfMemory, out.OutOfProcesses = p.exhaustedBy() == memory, p.exhaustedBy() == processes
	if reason := p.killedFor(); reason != nil {
		return out, reason
	}
	if err != nil {
		return out, fmt.Errorf("wait for function %s: %w", p.cmd.Path, err)
	}
	return out, nil
}

// feed writes stdin to the process and closes its end: at once what fits into the pipe,
// the rest as the function reads. There is no error to report: a function may end without
// reading its input.
func (p *process) feed(stdin []byte) {
	p.fed = writeAvailable(p.stdin, stdin)
	if p.fed == len(stdin) {
		_ = p.stdin.Close()
		return
	}
	p.background.Go(func() {
		n, _ := p.stdin.Write(stdin[p.fed:])
		p.fed += n
		_ = p.stdin.Close()
	})
}

// outcome returns how a process ended; a nil state is unknown.
func outcome(state *os.ProcessState) Outcome {
	if state == nil {
		return Outcome{ExitCode: -1}
	}
	out := Outcome{ExitCode: state.ExitCode(), Status: state.String()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = ws.Signal()
	}
	return out
}

// registry is the functions that run. A process has one, as it has one set of children,
// whatever number of Reapers and Runners it has.
type registry struct {
	// starts is held for reading while a function is started, so that its pid is registered
	// before it can be taken for an orphan.
	starts sync.RWMutex
	mu     sync.Mutex
	// running counts the registrations of each pid, which is also that of a session. There
	// are two for a moment when a pid is used again before its last owner is forgotten.
	running map[int]int
	// outputs are the pipes of outputs that are being read, as links of descriptors show them.
	outputs map[string]bool
}

var functions = registry{running: map[int]int{}, outputs: map[string]bool{}}

// addOutput registers a pipe. A Reaper kills no process that can write to it: what it wrote would be cut.
func (r *registry) addOutput(pipe *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs[pipeLink(pipe)] = true
}

func (r *registry) removeOutput(pipe *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outputs, pipeLink(pipe))
}

// pipeLink returns what the link of a pipe's descriptor in /proc reads.
func pipeLink(pipe *os.File) string {
	info, err := pipe.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("pipe:[%d]", stat.Ino)
}

// holdsOutput reports whether a process has an output open that is being read. The caller holds mu.
func (r *registry) holdsOutput(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	descriptors, _ := os.ReadDir(dir)
	return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		link, _ := os.Readlink(filepath.Join(dir, d.Name()))
		return r.outputs[link]
	})
}

// start forks and registers the new process in one step, as far as a Reaper can see.
func (r *registry) start(fork func() (*os.Process, error)) (*os.Process, error) {
	r.starts.RLock()
	defer r.starts.RUnlock()
	p, err := fork()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[p.Pid]++
	return p, nil
}

// forget forgets a process once it was reaped. Before that, a Reaper would take it for an
// orphan and steal its exit status.
func (r *registry) forget(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[pid]--; r.running[pid] <= 0 {
		delete(r.running, pid)
	}
}

// hold waits until no start is under way, and keeps functions from being started and
// forgotten until release is called.
func (r *registry) hold() (release func()) {
	r.starts.Lock()
	r.mu.Lock()
	return func() {
		r.mu.Unlock()
		r.starts.Unlock()
	}
}
