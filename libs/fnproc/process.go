// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"cmp"
	"context"
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
	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// process is a started function with our ends of its pipes. Goroutines collect its output as soon as it starts.
type process struct {
	*os.Process
	cmd                   Command
	launcher              *Launch // launcher of cmd, or direct if cmd has no launcher
	reaper                *Reaper
	confiner              *confine.Confiner // nil for launchers, which are not confined
	watch                 *Watch
	temp                  *confine.TempDir // nil if there is none
	tempWatch             tempWatch
	stdin, stdout, stderr *os.File
	arguments             *os.File // pipe for the launcher's arguments, or nil
	output, log           *collector
	background            sync.WaitGroup // goroutines that use the pipes or check temp
	exited                chan struct{}  // closed when the main process has exited, before it is reaped
	waitErr               error          // error from waiting for the exit
	handle                *os.File       // pidfd; nil if the kernel does not support pidfds
	spare                 spareState
	fed                   int  // bytes of input written
	untouched             bool // true if the process exited without reading its input

	mu     sync.Mutex // guards the following fields
	reaped bool       // true if the kernel may have given its ids to another process
	reason error      // reason why we killed the process, or nil
	// exhausted is the resource that had run out when the Watch killed the process. The function then fails as if the
	// kernel had killed it, and reason is nil. After any other kill, the runner returns reason as an error.
	exhausted resource
}

// direct is the launch configuration of commands that run without a launcher.
var direct = &Launch{Direct: true}

func (r *Runner) newProcess(cmd Command) *process {
	p := &process{
		cmd: cmd, launcher: cmp.Or(cmd.Launch, direct), reaper: r.cfg.Reaper, watch: r.cfg.Watch,
		exited: make(chan struct{}),
	}
	if p.launcher.Direct {
		p.confiner = r.cfg.Confiner
	}
	return p
}

// start starts the process. Size is the expected number of bytes of output. If start succeeds, callers must call
// finish, which frees the resources of the process.
func (p *process) start(size int) error {
	theirs, err := p.openPipes()
	defer closeAll(theirs)
	if err == nil {
		err = p.launch(theirs)
	}
	if err == nil {
		err = p.sendArguments()
	}
	if err != nil {
		p.closePipes()
		_ = p.temp.Remove() // retried with a later directory
		return startError(p.cmd, p.launcher, err)
	}
	if !p.spare.inUse() {
		p.spare.input = theirs[0]
		theirs[0] = nil
	}
	p.output = newCollector("output", p.stdout, p.cmd.MaxOutput, size)
	p.log = newCollector("log", p.stderr, p.cmd.MaxLog, minBuffer)
	p.log.cut = true
	for _, c := range []*collector{p.output, p.log} {
		p.background.Go(func() { p.gatherOutput(c) })
	}
	functions.addOutput(p.stdout)
	p.watchTempDir()
	go p.awaitExit()
	return nil
}

// openPipes creates the pipes of the process. It returns the files that the function inherits, in the order of their
// descriptors, beginning with stdin. The caller must close these files, even after an error.
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
	if err := p.launcher.chownPipes(theirs); err != nil {
		return theirs, err
	}
	inherited, arguments, err := p.launcher.openFiles()
	p.arguments = arguments
	return append(theirs, inherited...), err
}

func (p *process) closePipes() {
	closeAll([]*os.File{p.stdin, p.stdout, p.stderr, p.arguments, p.spare.input, p.handle})
}

// closeAll closes files. It ignores errors, because some files are nil or already closed.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// launch starts the program of the process as the leader of a new session. The process inherits the given files. A new
// process group would be cheaper, because Linux creates a scheduling group for each session. But a function that stays
// in the session of this program could join the process group of this program. A sandbox launcher starts on the thread
// of its Starter. A confined function starts on a new thread that confines itself.
func (p *process) launch(files []*os.File) error {
	setup, err := p.confiner.Prepare(p.permissions(), p.cmd.Env)
	if err != nil {
		return err
	}
	defer setup.Close()
	p.temp = setup.Temp
	pidfd := -1 // a kernel without pidfds does not change this value
	attr := &os.ProcAttr{
		Dir: p.cmd.Dir, Files: files, Sys: attributes(p.launcher, &pidfd),
		Env: append([]string{}, setup.Env...), // nil would mean our own environment
	}
	start := programStart{process: p, setup: setup, attr: attr}
	switch {
	case p.launcher.Starter != nil:
		if err := p.launcher.Starter.runOnThread(start.run); err != nil {
			return err
		}
	case setup.Restricts():
		osthread.Own(start.run)
	default:
		start.run()
	}
	p.handle = newHandle(pidfd)
	if start.err == nil {
		setup.LimitProcess(p.Pid)
	}
	return start.err
}

// permissions returns the command's program and permissions for the Confiner.
func (p *process) permissions() confine.Function {
	c := p.cmd
	return confine.Function{Path: c.Path, Dir: c.Dir, Readable: c.Readable, Network: c.Network, Shared: c.Shared}
}

// programStart starts the program of a process on the thread that calls the method run.
type programStart struct {
	process *process
	setup   *confine.Setup
	attr    *os.ProcAttr
	err     error
}

// run confines the calling thread, starts the program, and registers the process. The registration happens before a
// Reaper can see the process, because the Reaper would kill an unregistered process. run also registers the process
// with the Watch. Otherwise the Watch would kill another function because of the memory of this process. The process
// inherits the timer slack of the calling thread.
func (s *programStart) run() {
	if s.err = s.setup.RestrictThread(); s.err != nil {
		return
	}
	functions.starts.RLock()
	defer functions.starts.RUnlock()
	defer setSlack()()
	descriptors.CloseOnExec()
	cmd := s.process.cmd
	s.process.Process, s.err = os.StartProcess(cmd.Path, append([]string{cmd.Path}, cmd.Args...), s.attr)
	if s.err == nil {
		functions.addProcess(s.process.Pid)
		s.process.watch.addProcess(s.process)
	}
}

// sendArguments sends the function's arguments to its sandbox launcher through a pipe. If that fails, it kills the
// launcher.
func (p *process) sendArguments() error {
	err := p.launcher.sendArguments(p.Pid, p.arguments, &p.background)
	if err != nil {
		p.kill(err)
		_ = awaitEnd(p.Pid) // reap fails before the end, and holds a lock that the Watch needs
		_, _ = p.reap()
	}
	return err
}

// gatherOutput reads the collector's pipe to its end. If the read fails, for example because the output is too large,
// it kills the process.
func (p *process) gatherOutput(c *collector) {
	if err := c.readAll(p.spare.tooMuch); err != nil {
		p.spare.retire()
		p.kill(err)
	}
}

// awaitExit waits until the main process has exited, and then closes p.exited. It does not reap the process. The kernel
// therefore does not reuse the process's pid, which is also the id of its process group.
func (p *process) awaitExit() {
	defer close(p.exited)
	if !awaitHandle(p.handle) {
		p.waitErr = awaitEnd(p.Pid)
	}
}

// minBuffer is the initial size of a buffer for output of unknown size, in bytes.
const minBuffer = 4 << 10

// evaluate writes stdin to the process, waits until it has exited, and calls finish. Callers may call it once.
func (p *process) evaluate(ctx context.Context, stdin []byte) (Outcome, error) {
	p.hurryTempDir()
	stopKilling := context.AfterFunc(ctx, func() { p.kill(stoppedError(ctx)) })
	p.output.expectSize(len(stdin) + minBuffer)
	enlargePipes(len(stdin), p.stdin, p.stdout)
	p.feedInput(stdin)
	<-p.exited
	switch {
	case !stopKilling():
		p.kill(stoppedError(ctx)) // the callback may still be running
	case p.killedFor() == nil && p.exhaustedBy() == nothing:
		p.awaitOutput(ctx)
	}
	state, err := p.finish()

	out := outcomeOf(state)
	p.launcher.translateExit(&out)
	out.Output, out.Log = p.output.buf, p.log.buf
	out.OutOfMemory = p.exhaustedBy() == memory
	out.OutOfProcesses = p.exhaustedBy() == processes
	if reason := p.killedFor(); reason != nil {
		return out, reason
	}
	if err != nil {
		return out, fmt.Errorf("wait for function %s: %w", p.cmd.Path, err)
	}
	return out, nil
}

// feedInput writes stdin to the process and then closes the pipe. It immediately writes as many bytes as the pipe
// accepts, and writes the rest in the background. It ignores errors, because a function may exit without reading its
// input.
func (p *process) feedInput(stdin []byte) {
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

// logPatience is the maximum wait for the end of a function's stderr after its stdout has ended.
const logPatience = 2 * time.Second

// awaitOutput waits until all processes that can write to a function's output have closed it. Otherwise a truncated
// resource list could pass as a complete list. If ctx is canceled, awaitOutput kills these processes. It also waits for
// the end of the function's log, for at most logPatience.
func (p *process) awaitOutput(ctx context.Context) {
	select {
	case <-p.output.ended:
	default:
		select { // rare case: the select above is cheaper
		case <-p.output.ended:
		case <-ctx.Done():
			p.kill(&StoppedError{Err: ctx.Err(), Cause: context.Cause(ctx), OutputHeld: true})
			return
		}
	}
	select {
	case <-p.log.ended:
	default:
		select {
		case <-p.log.ended:
		case <-ctx.Done():
		case <-time.After(logPatience):
		}
	}
}

// finish kills the remaining processes in the group of an exited process, frees its resources and returns its state.
// The owner of the process, an evaluation or the Runner, must call finish exactly once.
func (p *process) finish() (*os.ProcessState, error) {
	p.mu.Lock()
	p.killLocked() // kills the rest of the process group
	p.mu.Unlock()
	p.interruptPipes()
	p.unwatchTempDir()
	// The wait lasts until no process can write to stdout. The Reaper spares orphans with a registered stdout, so we
	// unregister stdout first. Then the Reaper kills these orphans, and the wait ends.
	functions.removeOutput(p.stdout)
	p.background.Wait()
	p.untouched = p.spare.readNothing(p.fed)
	state, err := p.reap()
	p.closePipes()
	p.temp.RemoveLater()
	if p.waitErr != nil {
		err = p.waitErr
	}
	return state, err
}

// interruptPipes interrupts blocked reads and writes of the function's pipes.
func (p *process) interruptPipes() {
	past := time.Unix(1, 0)
	_ = p.stdin.SetWriteDeadline(past)
	_ = p.arguments.SetWriteDeadline(past)
	_ = p.stdout.SetReadDeadline(past)
	_ = p.stderr.SetReadDeadline(past)
}

// reap removes the exited process from the kernel's process table and returns the state of the process.
func (p *process) reap() (*os.ProcessState, error) {
	defer p.reaper.evaluationEnded()
	defer functions.forgetProcess(p.Pid)
	defer p.watch.removeProcess(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	return p.Wait()
}

// kill kills the process with its process group. It records the reason, unless an earlier call recorded a reason.
func (p *process) kill(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == nil {
		p.reason = reason
	}
	p.killLocked()
}

// killLocked kills the process group. It kills the main process separately, because this process may have left the
// group. The caller holds mu, so that the process cannot be reaped during the call and its ids stay valid.
func (p *process) killLocked() {
	if p.reaped {
		return
	}
	_ = unix.Kill(p.Pid, unix.SIGKILL)
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
}

// killedFor returns the reason that was passed to the first call of kill, or nil if kill was not called.
func (p *process) killedFor() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// outcomeOf returns the outcome of an exited process. State is nil if the process's state is unknown.
func outcomeOf(state *os.ProcessState) Outcome {
	if state == nil {
		return Outcome{ExitCode: -1}
	}
	out := Outcome{ExitCode: state.ExitCode(), Status: state.String()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = ws.Signal()
	}
	return out
}

// registry contains the running functions. A program has a single registry, even if it has several Reapers and Runners.
// This is because all Reapers see the same children, the children of the program.
type registry struct {
	// starts is locked for reading while a function is started and registered. Without this lock, the Reaper could see
	// the function before it is registered, and would kill it as an orphan.
	starts sync.RWMutex
	mu     sync.Mutex
	// running maps the pid of each function to the number of its registrations. The pid is also the id of the function's
	// session. The number is briefly two if the kernel reuses a pid before the old registration is removed.
	running map[int]int
	// outputs contains the pipes from which we are reading the output of functions. The keys are the names of these pipes
	// in /proc/PID/fd, such as "pipe:[4026]".
	outputs map[string]bool
}

var functions = registry{running: map[int]int{}, outputs: map[string]bool{}}

// addOutput registers the output pipe of a function. The Reaper does not kill processes that can write to the pipe,
// because the output would be truncated.
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

// pipeLink returns the name of a pipe in /proc/PID/fd, such as "pipe:[4026]".
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

// holdsOutput reports whether a process can write to a registered output pipe. The caller holds mu.
func (r *registry) holdsOutput(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	descriptors, _ := os.ReadDir(dir)
	return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		link, _ := os.Readlink(filepath.Join(dir, d.Name()))
		return r.outputs[link]
	})
}

// addProcess registers the process of a function. Callers must lock the mutex starts for reading before they start the
// process, and unlock it after addProcess returns. Otherwise a Reaper could mistake the process for an orphan.
func (r *registry) addProcess(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[pid]++
}

// forgetProcess removes a process from the registry. Callers must reap the process first, because a Reaper would
// mistake an unregistered process for an orphan and reap it.
func (r *registry) forgetProcess(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[pid]--; r.running[pid] <= 0 {
		delete(r.running, pid)
	}
}

// holdStarts waits for starts in progress. Until the caller calls release, no further function starts, and no
// registered process is removed. During this time, a Reaper can compare its list of children with the registry.
func (r *registry) holdStarts() (release func()) {
	r.starts.Lock()
	r.mu.Lock()
	return func() {
		r.mu.Unlock()
		r.starts.Unlock()
	}
}
