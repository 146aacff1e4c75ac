package fnproc

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxIdleBytes is how much a process may write to stdout and to stderr before it gets
// its input. What waits for its input has at most greeted.
const maxIdleBytes = 64 << 10

var (
	errTalksBeforeInput = errors.New("it wrote more than a process may that waits for its input")
	errNotNeeded        = errors.New("it is not needed any more")
)

// idle is the life of a process before its evaluation. One that was started for its
// evaluation has none: the zero value.
type idle struct {
	state atomic.Int32
	file  fileID
	// input is the function's end of its stdin, kept to see what it has not read.
	input *os.File
}

// The states. Only one of those who want to change stateIdle succeeds.
const (
	stateTaken int32 = iota // belongs to an evaluation
	stateIdle               // belongs to nobody
	stateEnded              // must not be used any more
)

// startIdle starts a process of cmd that waits for its evaluation. Its owner is who
// takes it, or who sees it end before.
func startIdle(cmd Command, reaper *Reaper) (*process, error) {
	p := newProcess(cmd, reaper)
	p.idle.state.Store(stateIdle)
	p.idle.file, _ = identify(cmd) // before it starts: a file that changes meanwhile is another one
	if err := p.start(minBuffer); err != nil {
		return nil, err
	}
	reaper.waits(p.number, p.retire)
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
	if !p.idle.change(stateTaken) {
		return false
	}
	p.reaper.taken(p.number)
	return true
}

// retire ends the process unless it was taken.
func (p *process) retire() {
	if p.idle.end() {
		p.end(errNotNeeded)
	}
}

// end makes sure that an idle process is not taken any more. It reports whether the
// process was idle.
func (i *idle) end() bool { return i.change(stateEnded) }

func (i *idle) change(state int32) bool { return i.state.CompareAndSwap(stateIdle, state) }

func (i *idle) taken() bool { return i.state.Load() == stateTaken }

// tooMuch reports whether the process is idle and has written too much for that. It is
// not idle any more then.
func (i *idle) tooMuch(size int) bool { return size > maxIdleBytes && i.end() }

// untouched reports whether the function has read nothing of so many bytes that were
// written to it. It is known only of processes that were idle.
func (i *idle) untouched(written int) bool {
	if i.input == nil {
		return false
	}
	raw, err := i.input.SyscallConn()
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

// fileID tells a program's file from another one that takes its place, or that it is
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
