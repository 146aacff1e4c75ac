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

// maxSpareBytes is how much a spare process may write to stdout and to stderr each. A
// process that waits for its input has written a short greeting at most.
const maxSpareBytes = 64 << 10

var (
	errTalksBeforeInput = errors.New("it wrote more than a spare process may")
	errNotNeeded        = errors.New("it is not needed any more")
)

// spareState is the state of a process before its evaluation. The zero value is that of a
// process which was started for its evaluation: in use.
type spareState struct {
	state atomic.Int32
	file  fileID
	// input is the function's end of its stdin, kept to see what it has not read.
	input *os.File
}

// The states of a process. Only one change of stateSpare succeeds.
const (
	stateInUse int32 = iota // by an evaluation, to which it belongs
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
	return p.spare.change(stateInUse)
}

// retire ends the process unless it was taken.
func (p *process) retire() {
	if p.spare.retire() {
		p.kill(errNotNeeded)
	}
}

// retire makes sure that a spare process is not taken any more. It reports whether the
// process was a spare one.
func (s *spareState) retire() bool { return s.change(stateEnded) }

func (s *spareState) change(state int32) bool { return s.state.CompareAndSwap(stateSpare, state) }

func (s *spareState) inUse() bool { return s.state.Load() == stateInUse }

// tooMuch reports whether the process is a spare one and has written too much for that. It
// is not one any more then.
func (s *spareState) tooMuch(size int) bool { return size > maxSpareBytes && s.retire() }

// untouched reports whether the function has read nothing of the written bytes, which is how many
// were written to it. It is known only of spare processes.
func (s *spareState) untouched(written int) bool {
	if s.input == nil {
		return false
	}
	raw, err := s.input.SyscallConn()
	if err != nil {
		return false
	}
	var unread int
	var readErr error
	if err := raw.Control(func(fd uintptr) { unread, readErr = unix.IoctlGetInt(int(fd), unreadBytes) }); err != nil {
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
	return idOf(stat), true
}
