// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Maximum and minimum interval between the checks of a [Watch] while functions run. If all functions are spare
// processes, the maximum is spareWatchInterval. The interval shrinks as memory or processes become scarce.
const (
	watchInterval      = 20 * time.Millisecond
	spareWatchInterval = 100 * time.Millisecond
	minWatchInterval   = 2 * time.Millisecond
)

// startRate is the maximum number of processes that a function can start per second.
const startRate = 20_000

// victimDivisor keeps a [Watch] from killing small functions. The Watch kills only functions that use more than an
// eighth of the container's limit. If all functions use less, other processes use up the container's resources.
const victimDivisor = 8

// resource is a resource of a container that functions can use up: memory or processes.
type resource int

const (
	nothing resource = iota
	memory
	processes
)

// Usage describes how much of a resource a container uses, in bytes of memory or in processes and threads.
type Usage struct {
	Limit int64
	// Free is the amount that functions may still use. It is negative if functions exceed their part.
	Free int64
}

// Watch kills the largest function before the container is out of memory. The kernel would kill only after trying to
// reclaim memory. During that time, all processes that need a page wait, including the server. Watch also kills the
// function with the most processes before the container is out of processes, because a server that cannot start a
// thread crashes. Watch kills spare processes before any function in use. It is safe for concurrent use. A nil Watch
// does nothing.
type Watch struct {
	memory, processes func() (Usage, bool)

	mu      sync.Mutex
	running map[*process]int64 // values: bytes that a killed function will free; zero if not killed
	timer   *time.Timer        // nil while no function or spare process runs
}

// NewWatch returns a Watch. The given functions return the container's usage of memory and of processes, or false if
// the usage is unknown. The argument processes may be nil.
func NewWatch(memory, processes func() (Usage, bool)) *Watch {
	if processes == nil {
		processes = func() (Usage, bool) { return Usage{}, false }
	}
	return &Watch{memory: memory, processes: processes, running: map[*process]int64{}}
}

// addProcess allows the Watch to kill the process p, until removeProcess is called.
func (w *Watch) addProcess(p *process) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[p] = 0
	if w.timer == nil {
		w.timer = time.AfterFunc(watchInterval, w.checkUsage)
	}
}

func (w *Watch) removeProcess(p *process) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, p)
	if len(w.running) == 0 && w.timer.Stop() { // if Stop returns false, the running check sets the timer
		w.timer = nil
	}
}

// checkUsage kills a function if the container has almost no memory or processes left, and sets the timer for the
// next check.
func (w *Watch) checkUsage() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		w.timer = nil
		return
	}
	next := time.Second
	if usage, ok := w.memory(); ok {
		next = min(next, w.maxInterval(), w.checkMemory(usage))
	}
	if usage, ok := w.processes(); ok {
		next = min(next, w.maxInterval(), w.checkProcesses(usage))
	}
	w.timer.Reset(next)
}

// maxInterval returns the maximum delay until the next check of a resource whose usage is known.
func (w *Watch) maxInterval() time.Duration {
	for p := range w.running {
		if p.spare.inUse() {
			return watchInterval
		}
	}
	return spareWatchInterval
}

// checkMemory kills the spare processes if no memory is free. If this is not enough, it kills the largest function. The
// memory of a killed function counts as free even before its exit. checkMemory returns the delay until the next check.
func (w *Watch) checkMemory(usage Usage) time.Duration {
	free := usage.Free
	for _, freed := range w.running {
		free += freed
	}
	if free <= 0 {
		for _, p := range w.killSpares() {
			free += w.running[p]
		}
	}
	if free <= 0 {
		p, size := w.largestFunction(usage.Limit/victimDivisor, func(p *process) int64 { return residentTree(p.Pid) })
		if p != nil {
			w.running[p] = size
			p.killExhausted(memory)
		}
	}
	return watchAgain(free, writeRate)
}

// checkProcesses kills the spare processes if the container can start almost no further processes. If this is not
// enough, it kills the function with the most processes. It kills nothing while a process that it killed earlier is
// still exiting. It returns the delay until the next check.
func (w *Watch) checkProcesses(usage Usage) time.Duration {
	ending := false
	for p := range w.running {
		ending = ending || p.exhaustedBy() == processes || errors.Is(p.killedFor(), errContainerFull)
	}
	if usage.Free <= 0 && !ending {
		tasks := countTasks()
		free := usage.Free
		for _, p := range w.killSpares() {
			free += tasks[p.Pid]
		}
		p, _ := w.largestFunction(usage.Limit/victimDivisor, func(p *process) int64 { return tasks[p.Pid] })
		if free <= 0 && p != nil {
			p.killExhausted(processes)
		}
	}
	return watchAgain(usage.Free, startRate)
}

// killSpares kills and returns all spare processes. This harms no evaluation: later evaluations only start more slowly.
func (w *Watch) killSpares() (killed []*process) {
	for p := range w.running {
		if p.spare.retire() {
			w.running[p] = residentTree(p.Pid)
			p.kill(errContainerFull)
			killed = append(killed, p)
		}
	}
	return killed
}

// watchAgain returns the delay until the next check of a resource. Free is the unused amount of the resource. Rate is
// the maximum amount that functions can use up per second.
func watchAgain(free, rate int64) time.Duration {
	return max(time.Duration(float64(free)/float64(rate)*float64(time.Second)), minWatchInterval)
}

// largestFunction returns the running function with the largest size according to sizeOf, and this size. It returns
// nil if no function is larger than least. It ignores functions that were already killed for memory.
func (w *Watch) largestFunction(least int64, sizeOf func(*process) int64) (largest *process, most int64) {
	most = least
	for p, freed := range w.running {
		if size := sizeOf(p); freed == 0 && size > most {
			largest, most = p, size
		}
	}
	return largest, most
}

// countTasks returns the number of processes and threads in each session. The id of a session is the pid of its
// function.
func countTasks() map[int]int64 {
	tasks := map[int]int64{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		content, _ := os.ReadFile(path) // empty if the process has exited
		session, threads := statNumber(content, sessionField), statNumber(content, threadsField)
		tasks[int(session)] += int64(threads) //nolint:gosec // these numbers fit
	}
	return tasks
}

// Positions of fields in the file /proc/PID/stat, counted after the program's name.
const (
	parentField  = 1
	sessionField = 3
	flagsField   = 6
	threadsField = 17
	pendingField = 28
)

// statNumber returns the number in a field of the file /proc/PID/stat, or 0. It counts fields from the last
// parenthesis, because the program's name in parentheses may contain any character.
func statNumber(stat []byte, field int) uint64 {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= field {
		return 0
	}
	number, _ := strconv.ParseUint(fields[field], 10, 64)
	return number
}

// maxMeasured is the maximum number of a function's processes whose memory we measure, because each measurement costs
// time.
const maxMeasured = 64

// residentTree returns the resident memory of a process and its descendants in bytes. The descendants count because
// the function may be a child of its sandbox launcher.
func residentTree(pid int) (size int64) {
	pids := []int{pid}
	for measured := 0; len(pids) > 0 && measured < maxMeasured; measured++ {
		size += residentSize(pids[0])
		pids = append(pids[1:], childrenOfThreads(pids[0])...)
	}
	return size
}

// childrenOfThreads returns the children of all threads of a process, or nil if the kernel does not list them.
func childrenOfThreads(pid int) (pids []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		children, _ := os.ReadFile(thread)
		for child := range strings.FieldsSeq(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				pids = append(pids, id)
			}
		}
	}
	return pids
}

// residentSize returns the memory of a process in bytes, or zero if it has exited.
func residentSize(pid int) int64 {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // empty if the process has exited
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// killExhausted kills the process because the container has almost run out of memory or processes. The evaluation ends
// as if the kernel had killed the process.
func (p *process) killExhausted(what resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exhausted = what
	p.killLocked()
}

// exhaustedBy returns the resource that had run out when the Watch killed the process, or the zero resource.
func (p *process) exhaustedBy() resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exhausted
}
