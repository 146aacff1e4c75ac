// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSpareBytes is how much a spare process may write to stdout and to stderr each. What
// waits for its input has at most greeted.
const maxSpareBytes = 64 << 10

var (
	errTalksBeforeInput = errors.New("it wrote more than a spare process may")
	errNotNeeded        = errors.New("it is not needed any more")
)

// spare is the life of a process before its evaluation. One that was started for its
// evaluation has none: the zero value.
type spare struct {
	state atomic.Int32
	file  fileID
	// input is the function's end of its stdin, kept to see what it has not read.
	input *os.File
}

// The states. Only one change of stateSpare succeeds.
const (
	stateTaken int32 = iota // belongs to an evaluation
	stateSpare              // can be taken
	stateEnded              // must not be used any more
)

// startSpare starts a spare process of cmd. Its owner is the evaluation that takes it, or
// the pool if it ends before.
func (r Runner) startSpare(cmd Command) (*process, error) {
	p := r.newProcess(cmd)
	p.spare.state.Store(stateSpare)
	p.spare.file, _ = identify(cmd) // before it starts: a file that changes meanwhile is another one
	if err := p.start(minBuffer); err != nil {
		return nil, err
	}
	return p, nil
}

// take makes the process the caller's, to evaluate. It fails for one that is dead or
// about to be.
func (p *process) take() bool {
	select {
	case <-p.exited:
		return false
	default:
	}
	return p.spare.change(stateTaken)
}

// retire ends the process unless it was taken.
func (p *process) retire() {
	if p.spare.end() {
		p.end(errNotNeeded)
	}
}

// end makes sure that a spare process is not taken any more. It reports whether the
// process was a spare one.
func (s *spare) end() bool { return s.change(stateEnded) }

func (s *spare) change(state int32) bool { return s.state.CompareAndSwap(stateSpare, state) }

func (s *spare) taken() bool { return s.state.Load() == stateTaken }

// tooMuch reports whether the process is a spare one and has written too much for that. It
// is not one any more then.
func (s *spare) tooMuch(size int) bool { return size > maxSpareBytes && s.end() }

// untouched reports whether the function has read nothing of so many bytes that were
// written to it. It is known only of spare processes.
func (s *spare) untouched(written int) bool {
	if s.input == nil {
		return false
	}
	raw, err := s.input.SyscallConn()
	if err != nil {
		return false
	}
	var unread int
	var readErr error
	if err := raw.Control(func(fd uintptr) { unread, readErr = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		return false
	}
	return readErr == nil && unread == written
}

// fileID distinguishes a program's file from another one that takes its place, or that it is
// changed into.
type fileID struct {
	device, inode   uint64
	size            int64
	modified, moved syscall.Timespec
}

// identify returns the id of a command's program; ok is false if there is none.
func identify(cmd Command) (id fileID, ok bool) {
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{device: stat.Dev, inode: stat.Ino, size: stat.Size, modified: stat.Mtim, moved: stat.Ctim}, true
}
