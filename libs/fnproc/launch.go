// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/thread"
)

// Launch configures a launcher such as bubblewrap, which is the command's program, confines the function in a sandbox
// and exits with it. Its exit code is the function's, or 128 plus the number of the signal that killed the function.
// It must leave nothing running once the processes of its group are killed.
type Launch struct {
	// Direct is true if the program is the function itself, so that the Confiner confines it. Of the other fields, only
	// Name, Key and Limits apply.
	Direct bool
	// Name distinguishes the functions of a launcher.
	Name string
	// Key stands for the command's arguments, which may be long, when commands are compared. If it is empty, the
	// arguments are compared.
	Key string
	// Messages are the beginnings of lines that the launcher itself writes when it fails, such as "bwrap: ", with "*" for
	// any text.
	Messages []string
	Advice   string
	// Files are opened for reading for each process, from descriptor 3 on.
	Files []string
	// Arguments, if not empty, are written to the descriptor after those of Files: the launcher reads them first. They do
	// not appear in lists of processes.
	Arguments []byte
	// Limits, if not nil, returns the limits of a started process. They are set before the process gets its Arguments.
	Limits func() confine.Limits
	// TempFiles, if not zero, bounds the files in the sandbox's /tmp and /dev/shm, which are file systems in memory of
	// TempBytes. It is for launchers without such a limit. A function that creates more files is killed.
	TempFiles, TempBytes int64
	// User and Group are the ids of the launcher's process; user zero means the runner's user and group.
	User, Group uint32
	// Starter, if not nil, starts the launcher, which is then killed with this program. The launcher must kill its own
	// processes.
	Starter *Starter
}

// Function returns the name of the function. It differs from the path if several functions share a program.
func (c Command) Function() string {
	if c.Launch != nil {
		return c.Launch.Name
	}
	return c.Path
}

// keyParts returns the parts of a command that distinguish it from commands with the same program.
func (c Command) keyParts() []string {
	switch {
	case c.Launch == nil:
		return c.Args
	case c.Launch.Key == "":
		return append([]string{c.Launch.Name}, c.Args...)
	default:
		return []string{c.Launch.Name, c.Launch.Key}
	}
}

// openFiles opens the files that the launcher inherits, and a pipe for its arguments, which is nil without arguments.
// The caller closes them.
func (l *Launch) openFiles() (files []*os.File, arguments *os.File, err error) {
	if l == nil {
		return nil, nil, nil
	}
	for _, path := range l.Files {
		file, err := os.Open(path)
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		files = append(files, file)
	}
	if len(l.Arguments) == 0 {
		return files, nil, nil
	}
	theirs, arguments, err := os.Pipe()
	if err != nil {
		closeAll(files)
		return nil, nil, err
	}
	return append(files, theirs), arguments, nil
}

// sendArguments limits a process of the launcher and then writes its arguments to pipe, which it closes. It reports no
// error if the process has exited.
func (l *Launch) sendArguments(pid int, pipe *os.File, background *sync.WaitGroup) error {
	if l != nil && l.Limits != nil {
		if err := l.Limits().Set(pid, l.User, l.Group); err != nil && !errors.Is(err, syscall.ESRCH) {
			_ = pipe.Close()
			return err
		}
	}
	if pipe == nil {
		return nil
	}
	n := writeAvailable(pipe, l.Arguments)
	if n == len(l.Arguments) {
		return pipe.Close()
	}
	background.Go(func() {
		_, _ = pipe.Write(l.Arguments[n:])
		_ = pipe.Close()
	})
	return nil
}

func (l *Launch) launchStarter() *Starter {
	if l == nil {
		return nil
	}
	return l.Starter
}

// userCredential returns the user of the process; nil means the runner's user.
func (l *Launch) userCredential() *syscall.Credential {
	if l == nil || l.User == 0 {
		return nil
	}
	return &syscall.Credential{Uid: l.User, Gid: l.Group}
}

// chownPipes gives pipes to the user that the launcher runs as: functions open them again by /dev/stdin or
// /proc/self/fd.
func (l *Launch) chownPipes(pipes []*os.File) error {
	if l == nil || l.User == 0 {
		return nil
	}
	for _, pipe := range pipes {
		if err := pipe.Chown(int(l.User), int(l.Group)); err != nil {
			return err
		}
	}
	return nil
}

// signaled is the number that shells and containers add to a signal's number.
const signaled = 128

// translateExit replaces the exit code of a launcher with the function's.
func (l *Launch) translateExit(out *Outcome) {
	if l == nil || l.Direct || out.ExitCode <= signaled || out.ExitCode > signaled+64 {
		return
	}
	out.Signal = syscall.Signal(out.ExitCode - signaled)
	out.ExitCode, out.Status = -1, "signal: "+out.Signal.String()
}

// Starter starts launchers on a thread that exits only with the program: the kernel kills a launcher when the thread
// that started it exits, even if the program crashes. Go may stop other threads at any time.
type Starter struct {
	starts chan func()
	closed chan struct{}
	ended  sync.WaitGroup
}

// NewStarter returns a starter. Callers must close it.
func NewStarter() *Starter {
	s := &Starter{starts: make(chan func()), closed: make(chan struct{})}
	s.ended.Go(func() { thread.Own(s.serve) })
	return s
}

// serve starts launchers until the starter is closed.
func (s *Starter) serve() {
	for {
		select {
		case start := <-s.starts:
			start()
		case <-s.closed:
			return
		}
	}
}

// Close stops the thread, and with it the launchers that it started.
func (s *Starter) Close() {
	close(s.closed)
	s.ended.Wait()
}

// runOnThread calls start on the thread. A nil Starter calls it on the calling thread.
func (s *Starter) runOnThread(start func()) error {
	if s == nil {
		start()
		return nil
	}
	done := make(chan struct{})
	select {
	case s.starts <- func() { defer close(done); start() }:
		<-done
		return nil
	case <-s.closed:
		return errors.New("sandboxes are started no more")
	}
}
