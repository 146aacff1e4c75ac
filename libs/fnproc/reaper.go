package fnproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How long until the next look while there are orphans: one that was just killed ends
// soon, others have to wait for an evaluation, whose end causes a look anyway.
const (
	afterKill = 20 * time.Millisecond
	idleLook  = time.Second
)

// gather is how long a look waits for further evaluations to end.
const gather = 100 * time.Millisecond

// Reaper ends what functions leave behind: processes that left their function's
// group. They become children of this process, which kills them as soon as no
// evaluation is running that they could belong to, and takes them out of the kernel's
// table.
//
// A process that is kept started may have orphans too, which its evaluation may need.
// But nobody waits for such a process: where nothing else spares an orphan, the process
// is ended before it is used, and the orphan after it.
//
// Other parts of the program may start processes, as long as these stay in the
// program's own process group (no Setpgid, no Setsid), which the Reaper leaves alone;
// nobody may wait for unknown children, as wait4(-1) does. A program that is the first
// of its container needs a Reaper, since orphans come to it anyway.
//
// It tidies up after careless functions. One that means ill can hide in the program's
// group, or fork faster than it is killed: that is for the container to hold.
type Reaper struct {
	log   *slog.Logger
	group int           // the program's own process group
	nudge chan struct{} // of size one: a look that is still to come sees everything

	// starts is held for reading while a function is started, so that its pid is in
	// the books before anybody who holds it for writing looks at them.
	starts sync.RWMutex
	mu     sync.Mutex
	books  ledger
	idle   map[uint64]func() // how to retire the idle processes, by number
}

// NewReaper makes this process the parent of the orphans among its descendants, for
// good. Run does the rest.
func NewReaper(log *slog.Logger) (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphaned processes: %w", os.NewSyscallError("prctl", err))
	}
	return &Reaper{log: log, group: unix.Getpgrp(), nudge: make(chan struct{}, 1), books: newLedger(), idle: map[uint64]func(){}}, nil
}

// Run looks for orphans after each evaluation until ctx ends, and then until there are
// none, for a second at most. The
// evaluations should be over by that time: orphans of those that are not stay.
func (r *Reaper) Run(ctx context.Context) {
	var next <-chan time.Time
	nudge := r.nudge
	for {
		select {
		case <-ctx.Done():
			r.lookLast()
			return
		case <-nudge:
			// One look for all evaluations that end in the meantime.
			nudge, next = nil, time.After(gather)
		case <-next:
			nudge, next = r.nudge, nil
			if wait := r.look(); wait > 0 {
				next = time.After(wait)
			}
		}
	}
}

// lastLooks is how many looks there are at the end.
const lastLooks = int(time.Second / afterKill)

// lookLast looks until nothing is left that could be ended: an orphan may have started
// others that become ours once it is dead.
func (r *Reaper) lookLast() {
	for range lastLooks {
		if wait := r.look(); wait == 0 {
			return
		}
		<-time.After(afterKill)
	}
}

// look reaps and kills what it may, and returns when to look again, zero if there are
// no orphans.
func (r *Reaper) look() (wait time.Duration) {
	children, err := childrenOf(os.DirFS("/proc"), os.Getpid())
	if err != nil {
		r.log.Error("cannot look for processes that functions left behind", "error", err)
		return idleLook
	}
	// What was listed and is a function of ours is in the books once no start is under
	// way. Whatever else is listed, and is still our child, can only be an orphan, or a
	// process that another part of the program started.
	r.starts.Lock()
	defer r.starts.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pid := range r.books.suspects(children) {
		wait = soonest(wait, r.handle(pid))
	}
	return wait
}

// handle reaps a suspect that has ended, and kills one whose time is over. It returns
// when to look again because of it, zero if never.
func (r *Reaper) handle(pid int) time.Duration {
	if group, err := unix.Getpgid(pid); err == nil && group == r.group {
		return 0
	}
	ended, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	if err != nil || ended == pid {
		r.books.gone(pid) // reaped now, or it was no child of ours any more
		return afterKill  // what it had started may have become ours meanwhile
	}
	if owners := r.books.seen(pid); len(owners) > 0 {
		return r.retire(owners)
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	r.log.Warn("killing a process that a function left behind", "pid", pid, "command", string(command))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		r.log.Error("cannot kill a process that a function left behind", "pid", pid, "error", err)
		return idleLook
	}
	return afterKill
}

// retire ends those that an orphan waits for if all of them are idle, and returns when
// to look again.
func (r *Reaper) retire(owners []uint64) time.Duration {
	for _, number := range owners {
		if r.idle[number] == nil {
			return idleLook
		}
	}
	for _, number := range owners {
		r.idle[number]()
	}
	return afterKill
}

// soonest returns the shorter of two waits, of which zero is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
