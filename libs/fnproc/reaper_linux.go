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
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Delays between two scans for orphans, which are processes that functions left behind. The delay after a kill is
// short, because a killed orphan exits soon and this program then inherits the orphan's children.
const (
	afterKill    = 20 * time.Millisecond
	scanInterval = time.Second
)

// gatherEnds is the delay between the end of an evaluation and the next scan for orphans. It lets one scan serve
// several evaluations.
const gatherEnds = 100 * time.Millisecond

// abandoned is the time after which an exited child in this program's session counts as an orphan. Until then, we
// assume that other code of the program will wait for the child.
const abandoned = time.Minute

// Reaper kills orphans, the processes that functions started and left behind. The kernel makes them children of this
// process. Each function leads its own session, and its processes cannot move to the session of this program or of
// another function. The Reaper kills an orphan within a second. It waits longer if the orphan belongs to the session of
// a running evaluation, or can write to the output of a running evaluation.
//
// The Reaper does not kill processes that other code starts in this program's session (without Setsid). No code may
// wait for unknown children, as wait4(-1) does. A program that is the first process of its container needs a
// Reaper, because orphans become its children in any case.
type Reaper struct {
	log    *slog.Logger
	proc   fs.FS         // file system at /proc
	ending atomic.Bool   // true while the program shuts down
	nudge  chan struct{} // requests for a scan; capacity 1, because a scan finds all orphans

	mu    sync.Mutex        // held during a scan
	ended map[int]time.Time // time when a scan first saw each exited child in our own session
}

// NewReaper returns a Reaper and makes this process the parent of all orphans among its descendants. Callers must
// call Run, which kills the orphans.
func NewReaper(log *slog.Logger) (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphaned processes: %w", os.NewSyscallError("prctl", err))
	}
	return &Reaper{
		log: log, proc: os.DirFS("/proc"), nudge: make(chan struct{}, 1), ended: map[int]time.Time{},
	}, nil
}

// evaluationEnded requests a scan for orphans after the delay gatherEnds. A nil Reaper does nothing.
func (r *Reaper) evaluationEnded() {
	if r == nil {
		return
	}
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Run scans for orphans every second and after evaluations until ctx is canceled. It then continues to scan until no
// orphan is left, for at most a second.
func (r *Reaper) Run(ctx context.Context) {
	next := time.NewTimer(scanInterval)
	nudge := r.nudge
	for {
		select {
		case <-ctx.Done():
			r.ending.Store(true)
			r.KillOrphans()
			return
		case <-nudge:
			nudge = nil // the next scan covers all evaluations that end before it
			next.Reset(gatherEnds)
		case <-next.C:
			nudge = r.nudge
			delay, _ := r.scanOrphans()
			next.Reset(delay)
		}
	}
}

// KillOrphans scans for orphans until none is left, for at most a second. It returns false if the last scan failed or
// left orphans.
func (r *Reaper) KillOrphans() bool {
	for start := time.Now(); ; {
		next, clean := r.scanOrphans()
		if clean || time.Since(start) > time.Second {
			return clean
		}
		<-time.After(min(next, scanInterval/10)) //nolint:mnd // soon also after an error, which is often temporary
	}
}

// scanOrphans frees orphans that have exited, kills the other orphans, and returns the delay until the next scan. The
// result clean is false if the scan failed or may have left orphans.
func (r *Reaper) scanOrphans() (next time.Duration, clean bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	children, err := childrenOf(r.proc, os.Getpid())
	if err != nil {
		r.log.Error("cannot scan for orphans of functions", "error", err)
		return scanInterval, false
	}
	// While the lock is held, no function is being started. Therefore every function among the children is registered. All
	// other children are orphans, or belong to other code of this program.
	defer functions.holdStarts()()
	next, clean = scanInterval, true
	seen := r.ended
	r.ended = map[int]time.Time{}
	for _, pid := range children {
		if functions.running[pid] == 0 {
			delay, none := r.handleOrphan(pid, seen[pid])
			next = min(next, delay)
			clean = clean && none
		}
	}
	return next, clean
}

// handleOrphan reaps an orphan that has exited, and kills an orphan that belongs to no evaluation. The argument since
// is the time when a scan first found that the orphan had exited, or zero. handleOrphan returns the delay until the
// next scan. The result clean is false if the next scan may have an orphan to reap or kill.
func (r *Reaper) handleOrphan(pid int, since time.Time) (next time.Duration, clean bool) {
	session, err := unix.Getsid(pid)
	if err != nil {
		return afterKill, false // reaped by its owner
	}
	if own, _ := unix.Getsid(0); session == own && !r.isAbandoned(pid, since) {
		return scanInterval, true
	}
	if ended, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil || ended == pid {
		return afterKill, false
	}
	if functions.running[session] > 0 || (!r.ending.Load() && functions.holdsOutput(pid)) {
		return scanInterval, true
	}
	// A process that was already killed, for example with its sandbox, may need a moment to exit.
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && isEnding(stat) {
		return afterKill, false
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	report := r.log.Warn
	// During the shutdown, orphans are normal, because the functions that would have waited for them are already dead.
	if r.ending.Load() {
		report = r.log.Debug
	}
	report("killing an orphan of a function", "pid", pid, "command", strings.TrimSpace(string(command)))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		r.log.Error("cannot kill an orphan of a function", "pid", pid, "error", err)
		return scanInterval, false
	}
	return afterKill, false
}

// isAbandoned reports whether a child in our own session exited so long ago that no code seems to wait for it. Other
// code of this program started the parent of such a child, and the parent exited first.
func (r *Reaper) isAbandoned(pid int, since time.Time) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return false // still running, or already reaped
	}
	if since.IsZero() {
		since = time.Now()
	}
	r.ended[pid] = since
	return time.Since(since) > abandoned
}

// childrenOf returns the children of pid's first thread. They include all orphans, because the kernel assigns orphans
// to this thread. If the kernel does not list these children, childrenOf returns the children of all threads. Proc is
// the file system at /proc.
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

// childrenByScan returns the children of pid. To find them, it reads the parent of every process in proc.
func childrenByScan(proc fs.FS, pid int) ([]int, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		// We skip processes that have exited during the scan.
		if stat, err := fs.ReadFile(proc, entry.Name()+"/stat"); err == nil && parentOf(stat) == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// isEnding reports whether a process was killed or is exiting, according to the content of /proc/PID/stat.
func isEnding(stat []byte) bool {
	// The constant exiting is the flag PF_EXITING. The constant killed is the bit of SIGKILL in a signal mask.
	const exiting, killed = 0x4, 1 << (unix.SIGKILL - 1)
	return statNumber(stat, flagsField)&exiting != 0 || statNumber(stat, pendingField)&killed != 0
}

// parentOf returns the parent's pid in the content of /proc/PID/stat, or 0.
func parentOf(stat []byte) int { return int(statNumber(stat, parentField)) } //nolint:gosec // a pid fits
