// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Intervals at which a [Watch] checks the container while functions run, shorter if less is left.
const (
	watchInterval    = 20 * time.Millisecond
	minWatchInterval = 2 * time.Millisecond
)

// startRate is the number of processes that a function can start per second.
const startRate = 20_000

// victimDivisor is the part of a container's limit, an eighth, that a function must use to be killed by a [Watch]. If
// all functions are smaller, something else exhausts the container.
const victimDivisor = 8

// resource is a limited resource of a container.
type resource int

const (
	nothing resource = iota
	memory
	processes
)

// Usage is the usage of a resource: bytes of memory, or processes and threads.
type Usage struct {
	Limit int64
	// Free is the amount that functions may still use; negative if they use too much.
	Free int64
}

// Watch kills the largest function before the container is out of memory. The kernel would do so too, but only after
// searching for memory everywhere, while each process of the container that needs a page waits, including the server.
// It also kills the function with the most processes before the container is out of processes: a server that needs a
// thread then would crash. It is safe for concurrent use; a nil Watch does nothing.
type Watch struct {
	memory, processes func() (Usage, bool)

	mu      sync.Mutex
	running map[*process]int64 // with the bytes that will be freed, or zero if it was not killed
	timer   *time.Timer        // nil while none run
}

// NewWatch returns a watch. The arguments return the usages, and false if they are unknown. The second may be nil.
func NewWatch(memory, processes func() (Usage, bool)) *Watch {
	if processes == nil {
		processes = func() (Usage, bool) { return Usage{}, false }
	}
	return &Watch{memory: memory, processes: processes, running: map[*process]int64{}}
}

// addProcess watches a process until it is removed.
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

// removeProcess ends the watch of a process that has exited.
func (w *Watch) removeProcess(p *process) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, p)
	if len(w.running) == 0 && w.timer.Stop() { // if false, a running check notices the change
		w.timer = nil
	}
}

// checkUsage kills functions if the container is exhausted.
func (w *Watch) checkUsage() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		w.timer = nil
		return
	}
	next := time.Second
	if usage, ok := w.memory(); ok {
		next = min(next, w.checkMemory(usage))
	}
	if usage, ok := w.processes(); ok {
		next = min(next, w.checkProcesses(usage))
	}
	w.timer.Reset(next)
}

// checkMemory kills a function if no memory is left, even after the killed functions have exited. It returns the time
// until the next check.
func (w *Watch) checkMemory(usage Usage) time.Duration {
	free := usage.Free
	for _, freed := range w.running {
		free += freed
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

// checkProcesses kills a function if almost no process is left, unless a killed function is still exiting. It returns
// the time until the next check.
func (w *Watch) checkProcesses(usage Usage) time.Duration {
	ending := false
	for p := range w.running {
		ending = ending || p.exhaustedBy() == processes
	}
	if usage.Free <= 0 && !ending {
		tasks := countTasks()
		if p, _ := w.largestFunction(usage.Limit/victimDivisor, func(p *process) int64 { return tasks[p.Pid] }); p != nil {
			p.killExhausted(processes)
		}
	}
	return watchAgain(usage.Free, startRate)
}

// watchAgain returns the time until the next check if a function can use up so many units per second.
func watchAgain(free, rate int64) time.Duration {
	inTime := time.Duration(float64(free) / float64(rate) * float64(time.Second))
	return min(max(inTime, minWatchInterval), watchInterval)
}

// largestFunction returns the running function with the largest size above least, or nil if there is none.
func (w *Watch) largestFunction(least int64, sizeOf func(*process) int64) (largest *process, most int64) {
	most = least
	for p, freed := range w.running {
		if size := sizeOf(p); freed == 0 && size > most {
			largest, most = p, size
		}
	}
	return largest, most
}

// countTasks returns the numbers of processes and threads by session. Each function leads a session.
func countTasks() map[int]int64 {
	tasks := map[int]int64{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		content, _ := os.ReadFile(path) // empty if the process has exited
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		const sessionField, threadsField = 3, 17
		if len(fields) > threadsField {
			session, _ := strconv.Atoi(fields[sessionField])
			threads, _ := strconv.ParseInt(fields[threadsField], 10, 64)
			tasks[session] += threads
		}
	}
	return tasks
}

// maxMeasured bounds the number of measured processes per function.
const maxMeasured = 64

// residentTree returns the memory of a process and its descendants in bytes: the function is a child of its launcher.
func residentTree(pid int) (size int64) {
	pids := []int{pid}
	for measured := 0; len(pids) > 0 && measured < maxMeasured; measured++ {
		size += residentSize(pids[0])
		pids = append(pids[1:], childrenOfThreads(pids[0])...)
	}
	return size
}

// childrenOfThreads returns the children of all threads of a process; none on a kernel that does not list them.
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
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// killExhausted kills the process because its container is exhausted, as if the kernel had killed it.
func (p *process) killExhausted(what resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exhausted = what
	p.killLocked()
}

// exhaustedBy returns the argument of killExhausted; nothing if it was not called.
func (p *process) exhaustedBy() resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exhausted
}
