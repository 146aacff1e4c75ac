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

// Launch is how a command's program starts the function in a sandbox: a launcher, such as bubblewrap,
// which confines the function and ends with it. Its exit code is the function's, or 128 and the
// number of the signal that ended the function. It must leave nothing running once the processes of
// its group are killed.
type Launch struct {
	// Direct is true if the program is the function itself, which the Confiner confines. Of the other fields, Name, Key and
	// Limits apply.
	Direct bool
	// Name distinguishes the functions that one launcher starts.
	Name string
	// Key distinguishes commands by their arguments, which may be long: it is the same for the same ones.
	// Empty compares the arguments themselves.
	Key string
	// Messages are how the lines begin that the launcher itself writes when it fails, such as "bwrap: ", with "*" for
	// any text; none if it writes none of its own.
	Messages []string
	Advice   string
	// Files are opened for reading for each process, which has them as descriptors from 3 on.
	Files []string
	// Arguments, if there are any, are what the launcher reads from the descriptor after those of Files before it does
	// anything. They are not seen in lists of processes.
	Arguments []byte
	// Limits, if not nil, returns the limits of a process that has started, which are set before it gets its Arguments.
	Limits func() confine.Limits
	// TempFiles, if not zero, bounds the files in the sandbox's /tmp and in its /dev/shm, which are file systems in memory
	// of TempBytes: a launcher may have no way to say so. A function that makes more of them is killed.
	TempFiles, TempBytes int64
	// User and Group are what the launcher runs as; user zero is the runner's own, and its group.
	User, Group uint32
	// Starter, if not nil, starts the launcher, which then ends with this program. It has to end what it starts itself.
	Starter *Starter
}

// Function returns the name of the function: where many have the same program, it is not the path.
func (c Command) Function() string {
	if c.Launch != nil {
		return c.Launch.Name
	}
	return c.Path
}

// parts returns what distinguishes a command from others with the same program.
func (c Command) parts() []string {
	switch {
	case c.Launch == nil:
		return c.Args
	case c.Launch.Key == "":
		return append([]string{c.Launch.Name}, c.Args...)
	default:
		return []string{c.Launch.Name, c.Launch.Key}
	}
}

// open opens the files that the launcher inherits, and the pipe for its arguments, nil if it reads none. The caller
// closes them.
func (l *Launch) open() (files []*os.File, arguments *os.File, err error) {
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

// instruct limits a process of the launcher, and then writes its arguments to pipe, which is closed at last. A process
// that has ended reports that itself.
func (l *Launch) instruct(pid int, pipe *os.File, background *sync.WaitGroup) error {
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

// starter returns what starts the launcher.
func (l *Launch) starter() *Starter {
	if l == nil {
		return nil
	}
	return l.Starter
}

// credential returns the user to run as, nil for the runner's own.
func (l *Launch) credential() *syscall.Credential {
	if l == nil || l.User == 0 {
		return nil
	}
	return &syscall.Credential{Uid: l.User, Gid: l.Group}
}

// own gives pipes to the user that the launcher runs as: functions open them again by /dev/stdin or /proc/self/fd.
func (l *Launch) own(pipes []*os.File) error {
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

// signaled is what shells and containers add to the number of a signal.
const signaled = 128

// translate makes an outcome of a launcher that of the function.
func (l *Launch) translate(out *Outcome) {
	if l == nil || l.Direct || out.ExitCode <= signaled || out.ExitCode > signaled+64 {
		return
	}
	out.Signal = syscall.Signal(out.ExitCode - signaled)
	out.ExitCode, out.Status = -1, "signal: "+out.Signal.String()
}

// Starter starts launchers on a thread that ends with the program, and only then: the kernel ends a launcher with the
// thread that started it, however the program ends. Go ends other threads at any time.
type Starter struct {
	starts chan func()
	closed chan struct{}
	ended  sync.WaitGroup
}

// NewStarter returns a starter, which has to be closed.
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

// Close ends the thread, and the launchers that it started.
func (s *Starter) Close() {
	close(s.closed)
	s.ended.Wait()
}

// run calls start on the thread; a nil Starter calls it on any one.
func (s *Starter) run(start func()) error {
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
