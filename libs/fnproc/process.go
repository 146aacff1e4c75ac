package fnproc

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a function that was started, with our ends of its pipes.
type process struct {
	*os.Process
	cmd                   Command
	reaper                *Reaper
	stdin, stdout, stderr *os.File
}

// start starts cmd as the leader of a new process group. The caller has to call
// evaluate, which frees everything.
//
// A session of its own would hold the descendants better, but it costs a twentieth of
// the time that a small program takes, and more on a busy machine: Linux makes a
// scheduling group for each.
func start(cmd Command, reaper *Reaper) (*process, error) {
	p := &process{cmd: cmd, reaper: reaper}
	theirs, err := p.openPipes()
	defer closeAll(theirs)
	if err == nil {
		p.Process, err = reaper.start(func() (*os.Process, error) {
			return os.StartProcess(cmd.Path, append([]string{cmd.Path}, cmd.Args...), &os.ProcAttr{
				Dir:   cmd.Dir,
				Env:   append([]string{}, cmd.Env...), // nil would mean our own
				Files: theirs,
				Sys:   &syscall.SysProcAttr{Setpgid: true},
			})
		})
	}
	if err != nil {
		p.closePipes()
		return nil, startError(cmd, err)
	}
	return p, nil
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
	p.stderr, theirs[2], err = os.Pipe()
	return theirs, err
}

func (p *process) closePipes() { closeAll([]*os.File{p.stdin, p.stdout, p.stderr}) }

// closeAll closes pipes, of which there is nothing to learn; those that are nil or
// closed already are no harm.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// kill kills the main process, which may have left its group, and what is left of the
// group. It must not be called once the main process was reaped: the ids may be
// another's by then.
func (p *process) kill() {
	_ = unix.Kill(p.Pid, unix.SIGKILL)
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
}

// awaitExit blocks until the main process has ended. It leaves it unreaped, so that
// its pid, which is also the group's id, stays taken.
func (p *process) awaitExit() error {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}

// interrupt ends writes to the function, and waiting for what it writes.
func (p *process) interrupt() {
	past := time.Unix(1, 0)
	_ = p.stdin.SetWriteDeadline(past)
	_ = p.stdout.SetReadDeadline(past)
	_ = p.stderr.SetReadDeadline(past)
}

// reap frees the process's entry in the kernel's table and returns how it ended.
func (p *process) reap() (*os.ProcessState, error) {
	defer p.reaper.forget(p.Pid)
	return p.Wait()
}
