// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// Launch configures a launcher: a program such as bubblewrap that runs the function in a sandbox. The program of the
// command is then the launcher. The launcher must exit after the function, with the function's exit code. If a signal
// killed the function, the exit code must be 128 plus the signal's number. When the launcher's process group is killed,
// no process of the sandbox may remain.
type Launch struct {
	// Direct is true if the program of the command is the function itself instead of a launcher. The runner then confines
	// the function, and ignores all fields except Name, Key and Limits.
	Direct bool
	// Name is the name of the function. The path of the command does not identify the function, because all functions run
	// with the same launcher.
	Name string
	// Key identifies the command's arguments, which may be long. Commands with the same Key can share processes that were
	// started in advance. If Key is empty, the arguments themselves are compared.
	Key string
	// Messages contains the beginnings of lines that the launcher writes when it fails, such as "bwrap: ". In them, "*"
	// stands for any text.
	Messages []string
	Advice   string
	// Files contains the paths of files that the launcher inherits as descriptors 3 and higher, open for reading.
	Files []string
	// Arguments, if not empty, contains arguments that the launcher reads from a pipe before it starts the function. The
	// pipe's descriptor follows the descriptors of Files. Unlike [Command.Args], Arguments do not appear in process lists.
	Arguments []byte
	// Limits, if not nil, returns the resource limits for a started launcher. The runner sets them before it writes
	// Arguments, and thus before the launcher starts the function.
	Limits func() confine.Limits
	// TempFiles, if not zero, is the maximum number of files in the sandbox's /tmp, and in its /dev/shm. It is for
	// launchers that cannot set such a limit: the runner counts the files and kills a function that creates more.
	// TempBytes is the size of each of the two file systems. The runner recognizes them by this size.
	TempFiles, TempBytes int64
	// User and Group are the ids of the launcher process. User zero means the runner's own user and group.
	User, Group uint32
	// Starter, if not nil, starts the launcher on a thread that lives as long as this program. The kernel then kills the
	// launcher when this program exits. The launcher must in turn kill the processes of its sandbox.
	Starter *Starter
}

// Function returns the name of the function: Launch.Name, or the path of the program if Launch.Name is empty.
func (c Command) Function() string {
	if c.Launch != nil {
		return c.Launch.Name
	}
	return c.Path
}

// keyParts returns the values that distinguish a command from other commands with the same program.
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

// openFiles opens the files that the sandbox launcher inherits, and a pipe for its arguments. The result files includes
// the reading end of the pipe. The result arguments is the writing end, or nil if there are no arguments. The caller
// must close all returned files, even after an error.
func (l *Launch) openFiles() (files []*os.File, arguments *os.File, err error) {
	for _, path := range l.Files {
		file, err := os.Open(path)
		if err != nil {
			return files, nil, err
		}
		files = append(files, file)
	}
	if len(l.Arguments) == 0 {
		return files, nil, nil
	}
	theirs, arguments, err := os.Pipe()
	return append(files, theirs), arguments, err
}

// sendArguments limits the resources of the sandbox launcher, writes the arguments to pipe, and closes pipe. It
// returns no error if the launcher has already exited.
func (l *Launch) sendArguments(pid int, pipe *os.File, background *sync.WaitGroup) error {
	if l.Limits != nil {
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

// userCredential returns the user and group of the sandbox launcher. It returns nil if the launcher runs as the
// runner's own user.
func (l *Launch) userCredential() *syscall.Credential {
	if l.User == 0 {
		return nil
	}
	return &syscall.Credential{Uid: l.User, Gid: l.Group}
}

// chownPipes makes the launcher's user the owner of the pipes. Functions need this to open a pipe again, as /dev/stdin
// or in /proc/self/fd.
func (l *Launch) chownPipes(pipes []*os.File) error {
	if l.User == 0 {
		return nil
	}
	for _, pipe := range pipes {
		if err := pipe.Chown(int(l.User), int(l.Group)); err != nil {
			return err
		}
	}
	return nil
}

// signaled is the number that a sandbox launcher adds to a signal's number in its exit code, as shells and
// container runtimes do.
const signaled = 128

// translateExit translates a launcher's exit code above 128 into the signal that killed the function.
func (l *Launch) translateExit(out *Outcome) {
	if l.Direct || out.ExitCode <= signaled || out.ExitCode > signaled+64 {
		return
	}
	out.Signal = syscall.Signal(out.ExitCode - signaled)
	out.ExitCode = -1
	out.Status = "signal: " + out.Signal.String()
}

// Starter starts launchers on a dedicated thread. The kernel kills a launcher when the thread that started it exits,
// and Go may stop any other thread at any time. The Starter's thread exits only when the Starter is closed or the
// program exits, even by a crash.
type Starter struct {
	starts chan func()
	closed chan struct{}
	ended  sync.WaitGroup
}

// NewStarter returns a Starter with a new thread. Callers must close it.
func NewStarter() *Starter {
	s := &Starter{starts: make(chan func()), closed: make(chan struct{})}
	s.ended.Go(func() { osthread.Own(s.serve) })
	return s
}

// serve starts sandbox launchers on the Starter's thread until the Starter is closed.
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

// Close stops the Starter's thread, so that the kernel kills the sandbox launchers that the thread started.
func (s *Starter) Close() {
	close(s.closed)
	s.ended.Wait()
}

// runOnThread calls start on the Starter's thread. It returns an error if the Starter is closed.
func (s *Starter) runOnThread(start func()) error {
	done := make(chan struct{})
	select {
	case s.starts <- func() { defer close(done); start() }:
		<-done
		return nil
	case <-s.closed:
		return errors.New("sandboxes are started no more")
	}
}
