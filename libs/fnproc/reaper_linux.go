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

// Delays until the next scan. Killed processes exit soon, and their children become ours then. Orphans of running
// evaluations are found by regular scans.
const (
	afterKill    = 20 * time.Millisecond
	scanInterval = time.Second
)

// gatherEnds is the delay of a scan after an evaluation, so that the scan serves several evaluations.
const gatherEnds = 100 * time.Millisecond

// abandoned is the time for which other code of the program may leave an exited child unreaped. After that, the child
// is considered an orphan.
const abandoned = time.Minute

// Reaper kills orphans: processes that functions started and left behind. The kernel makes them children of this
// process.
//
// Each function leads its own session. The processes that it starts cannot move to the session of this program or of
// another function. An orphan in the session of a running evaluation is killed when the evaluation ends; so is an
// orphan that can write to the output of an evaluation. All other orphans are killed within a second.
//
// Other code of the program may start processes if they stay in the program's session (no Setsid), which the Reaper
// leaves alone. Nothing may wait for unknown children, as wait4(-1) does. A program that is the first process of its
// container needs a Reaper, because orphans become its children anyway.
type Reaper struct {
	log     *slog.Logger
	ending  bool              // true while the program shuts down
	session int               // the program's own
	nudge   chan struct{}     // of size one, because a scan finds all orphans
	ended   map[int]time.Time // time since which children in our own session have been zombies
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

// Run scans for orphans after each evaluation and every second until ctx is canceled, and then for a second at most
// until no orphan is left.
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
			nudge = nil // one scan serves all evaluations until then
			next.Reset(gatherEnds)
		case <-next.C:
			nudge = r.nudge
			next.Reset(r.scanOrphans())
		}
	}
}

// maxFinalScans bounds the scans during shutdown.
const maxFinalScans = int(time.Second / afterKill)

// finalScan scans until no orphan is left. Functions that are killed by the shutdown are not to blame for their
// orphans.
func (r *Reaper) finalScan() {
	r.ending = true
	for range maxFinalScans {
		if r.scanOrphans() == scanInterval {
			return
		}
		<-time.After(afterKill)
	}
}

// scanOrphans reaps and kills orphans, and returns when to scan again.
func (r *Reaper) scanOrphans() time.Duration {
	children, err := childrenOf(os.DirFS("/proc"), os.Getpid())
	if err != nil {
		r.log.Error("cannot scan for orphans of functions", "error", err)
		return scanInterval
	}
	// Listed functions are registered once no start is in progress. Other listed children are orphans, or belong to other
	// code of the program.
	defer functions.holdStarts()()
	again := scanInterval
	seen := r.ended
	r.ended = map[int]time.Time{}
	for _, pid := range children {
		if functions.running[pid] == 0 && r.handleOrphan(pid, seen[pid]) {
			again = afterKill
		}
	}
	return again
}

// handleOrphan reaps an orphan that has exited, and kills an orphan that belongs to no evaluation. It reports whether
// its descendants may have become ours. The argument since is the time at which it was first seen as a zombie, or
// zero.
func (r *Reaper) handleOrphan(pid int, since time.Time) (more bool) {
	session, err := unix.Getsid(pid)
	if err != nil {
		return true // reaped by its owner
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
	// Processes that were killed with their group may need a moment to exit, such as the rest of a sandbox.
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

// isAbandoned reports whether a child in our own session exited so long ago that nothing waits for it: it is the
// orphan of a process that other code of the program started.
func (r *Reaper) isAbandoned(pid int, since time.Time) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return false // still running, or gone
	}
	if since.IsZero() {
		since = time.Now()
	}
	r.ended[pid] = since
	return time.Since(since) > abandoned
}

// childrenOf returns children of pid, read from proc, the file system at /proc. The result contains at least the
// adopted children: the kernel gives an orphan to the first thread of its new parent, so the list of that thread is
// enough.
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
		// An error means that the process has exited.
		if stat, err := fs.ReadFile(proc, entry.Name()+"/stat"); err == nil && parentOf(stat) == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// isEnding reports whether a process was killed or is exiting, according to its stat file. The kernel needs a moment
// to remove it.
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

// parentOf returns the parent's pid in a stat file, or 0. The preceding fields are the state, and the program's name
// in parentheses, in which any character may occur.
func parentOf(stat []byte) int {
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
