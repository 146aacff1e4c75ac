// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How long until the next look: what was just killed ends soon, and what it had started
// becomes ours then. Orphans of evaluations that go on are found by looking regularly.
const (
	afterKill   = 20 * time.Millisecond
	regularLook = time.Second
)

// gatherEnds is how long a look waits for further evaluations to end.
const gatherEnds = 100 * time.Millisecond

// abandoned is how long a child of another part of the program may have ended without being
// waited for. After that it is the orphan of such a child.
const abandoned = time.Minute

// Reaper ends orphans: what functions started and left behind. The kernel makes them
// children of this process.
//
// Each function leads a session of its own, which nothing that it starts can leave for the
// session of this program or of another function. An orphan in the session of an evaluation
// that is running ends with it; any other is killed when it is found, after a second at
// most, whatever else is running.
//
// Other parts of the program may start processes, as long as these stay in the program's
// own session (no Setsid), which the Reaper leaves alone; nothing may wait for unknown
// children, as wait4(-1) does. A program that is the first of its container needs a Reaper,
// since orphans come to it anyway.
type Reaper struct {
	log     *slog.Logger
	session int               // the program's own
	nudge   chan struct{}     // of size one: a look that is still to come sees everything
	ended   map[int]time.Time // children in our own session that have ended: since when
}

// NewReaper makes this process the parent of the orphans among its descendants, for
// good. Run does the rest.
func NewReaper(log *slog.Logger) (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphaned processes: %w", os.NewSyscallError("prctl", err))
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return nil, fmt.Errorf("find the program's own session: %w", os.NewSyscallError("getsid", err))
	}
	return &Reaper{
		log: log, session: session, nudge: make(chan struct{}, 1), ended: map[int]time.Time{},
	}, nil
}

// evaluationEnded has orphans looked for soon. A nil Reaper does nothing.
func (r *Reaper) evaluationEnded() {
	if r == nil {
		return
	}
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Run looks for orphans after each evaluation and every second until ctx ends, and then
// until there are none, for a second at most.
func (r *Reaper) Run(ctx context.Context) {
	next := time.NewTimer(regularLook)
	defer next.Stop()
	nudge := r.nudge
	for {
		select {
		case <-ctx.Done():
			r.lookLast()
			return
		case <-nudge:
			nudge = nil // one look for all evaluations that end in the meantime
			next.Reset(gatherEnds)
		case <-next.C:
			nudge = r.nudge
			next.Reset(r.look())
		}
	}
}

// lastLooks is how many looks there are at the end.
const lastLooks = int(time.Second / afterKill)

// lookLast looks until nothing was left to be ended.
func (r *Reaper) lookLast() {
	for range lastLooks {
		if r.look() == regularLook {
			return
		}
		<-time.After(afterKill)
	}
}

// look reaps and kills orphans, and returns when to look again.
func (r *Reaper) look() time.Duration {
	children, err := childrenOf(os.DirFS("/proc"), os.Getpid())
	if err != nil {
		r.log.Error("cannot look for orphans of functions", "error", err)
		return regularLook
	}
	// What was listed and is a function is registered once no start is under way. What else
	// was listed, and is still our child, is an orphan or another part of the program's.
	defer functions.hold()()
	again := regularLook
	seen := r.ended
	r.ended = map[int]time.Time{}
	for _, pid := range children {
		if functions.running[pid] == 0 && r.handle(pid, seen[pid]) {
			again = afterKill
		}
	}
	return again
}

// handle reaps an orphan that has ended, and kills one that belongs to no evaluation. It
// reports whether its descendants may have become ours. If it was seen ended before, since
// is when that was.
func (r *Reaper) handle(pid int, since time.Time) (more bool) {
	session, err := unix.Getsid(pid)
	if err != nil {
		return true // it was reaped in the meantime, by its owner
	}
	if session == r.session && !r.isAbandoned(pid, since) {
		return false
	}
	if ended, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil || ended == pid {
		return true
	}
	if functions.running[session] > 0 {
		return false
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	r.log.Warn("killing an orphan of a function", "pid", pid, "command", string(command))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		r.log.Error("cannot kill an orphan of a function", "pid", pid, "error", err)
		return false
	}
	return true
}

// isAbandoned reports whether a child in our own session has ended so long ago that nothing
// waits for it: then it is the orphan of a process that another part of the program started.
func (r *Reaper) isAbandoned(pid int, since time.Time) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return false // it runs, or is gone
	}
	if since.IsZero() {
		since = time.Now()
	}
	r.ended[pid] = since
	return time.Since(since) > abandoned
}
