// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How long until the next scan: what was just killed ends soon, and what it had started
// becomes ours then. Orphans of evaluations that go on are found by scanning regularly.
const (
	afterKill    = 20 * time.Millisecond
	scanInterval = time.Second
)

// gatherEnds is how long a scan waits for further evaluations to end.
const gatherEnds = 100 * time.Millisecond

// abandoned is how long a child of other code of the program may have ended without being
// waited for. After that it is the orphan of such a child.
const abandoned = time.Minute

// Reaper ends orphans: what functions started and left behind. The kernel makes them
// children of this process.
//
// Each function leads a session of its own, which nothing that it starts can leave for the
// session of this program or of another function. An orphan in the session of an evaluation
// that is running ends with it; so does one that holds the output of an evaluation. Any other is killed when it is
// found, after a second at most, whatever else is running.
//
// Other code of the program may start processes, as long as these stay in the program's
// own session (no Setsid), which the Reaper leaves alone; nothing may wait for unknown
// children, as wait4(-1) does. A program that is the first of its container needs a Reaper,
// since orphans come to it anyway.
type Reaper struct {
	log     *slog.Logger
	ending  bool              // the program ends
	session int               // the program's own
	nudge   chan struct{}     // of size one: one scan finds everything
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

// evaluationEnded requests a scan soon. A nil Reaper does nothing.
func (r *Reaper) evaluationEnded() {
	if r == nil {
		return
	}
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Run scans for orphans after each evaluation and every second until ctx ends, and then
// until there are none, for a second at most.
func (r *Reaper) Run(ctx context.Context) {
	next := time.NewTimer(scanInterval)
	defer next.Stop()
	nudge := r.nudge
	for {
		select {
		case <-ctx.Done():
			r.finalScan()
			return
		case <-nudge:
			nudge = nil // one scan for all evaluations that end in the meantime
			next.Reset(gatherEnds)
		case <-next.C:
			nudge = r.nudge
			next.Reset(r.scan())
		}
	}
}

// maxFinalScans bounds the scans at the end.
const maxFinalScans = int(time.Second / afterKill)

// finalScan scans until nothing was left to be ended. What functions leave behind when the program ends
// them is no mistake of theirs.
func (r *Reaper) finalScan() {
	r.ending = true
	for range maxFinalScans {
		if r.scan() == scanInterval {
			return
		}
		<-time.After(afterKill)
	}
}

// scan reaps and kills orphans, and returns when to scan again.
func (r *Reaper) scan() time.Duration {
	children, err := childrenOf(os.DirFS("/proc"), os.Getpid())
	if err != nil {
		r.log.Error("cannot scan for orphans of functions", "error", err)
		return scanInterval
	}
	// What was listed and is a function is registered once no start is under way. What else
	// was listed, and is still our child, is an orphan, or belongs to other code of the program.
	defer functions.hold()()
	again := scanInterval
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
	if functions.running[session] > 0 || !r.ending && functions.holdsOutput(pid) {
		return false
	}
	// What was killed with its group may need a moment, such as the rest of a sandbox.
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && isEnding(stat) {
		return true
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	report := r.log.Warn
	if r.ending {
		report = r.log.Debug
	}
	report("killing an orphan of a function", "pid", pid, "command", strings.TrimSpace(string(command)))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		r.log.Error("cannot kill an orphan of a function", "pid", pid, "error", err)
		return false
	}
	return true
}

// isAbandoned reports whether a child in our own session has ended so long ago that nothing
// waits for it: then it is the orphan of a process that other code of the program started.
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

// childrenOf returns children of pid, read from proc, the file system at /proc. The result
// has at least the adopted children: the kernel gives an orphan to the first thread of its
// new parent, so the list of that thread is enough.
func childrenOf(proc fs.FS, pid int) ([]int, error) {
	list, err := fs.ReadFile(proc, fmt.Sprintf("%d/task/%d/children", pid, pid))
	if errors.Is(err, fs.ErrNotExist) {
		return childrenByScan(proc, pid) // a kernel without CONFIG_PROC_CHILDREN
	}
	if err != nil {
		return nil, fmt.Errorf("list children: %w", err)
	}
	var pids []int
	for _, field := range bytes.Fields(list) {
		child, err := strconv.Atoi(string(field))
		if err != nil {
			return nil, fmt.Errorf("list children: %w", err)
		}
		pids = append(pids, child)
	}
	return pids, nil
}

// childrenByScan returns the children of pid by asking every process for its parent.
func childrenByScan(proc fs.FS, pid int) ([]int, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // no process
		}
		// An error is a process that has ended.
		if stat, err := fs.ReadFile(proc, entry.Name()+"/stat"); err == nil && parent(stat) == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// isEnding reports whether a process, by the contents of its stat file, was killed or ends by itself: what is
// left of it takes the kernel a moment.
func isEnding(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const flagsField, pendingField = 6, 28
	if len(fields) <= pendingField {
		return false
	}
	flags, _ := strconv.ParseUint(string(fields[flagsField]), 10, 64)
	pending, _ := strconv.ParseUint(string(fields[pendingField]), 10, 64)
	const exiting, killed = 0x4, 1 << (unix.SIGKILL - 1) // the first is PF_EXITING
	return flags&exiting != 0 || pending&killed != 0
}

// parent returns the parent's pid in the contents of a stat file, or 0. The field
// before it is the state; the one before that is the program's name in parentheses,
// which may contain anything.
func parent(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pid
}
