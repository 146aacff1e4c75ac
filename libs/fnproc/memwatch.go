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

// When free memory is looked at: regularly while functions run, and sooner the less is free.
const (
	memoryCheck    = 20 * time.Millisecond
	minMemoryCheck = 2 * time.Millisecond
)

// victimDivisor: a function has to use this part of the limit, an eighth, to be killed by a
// [MemoryWatch]. Where all functions are smaller, it is not they that use the memory up.
const victimDivisor = 8

// Memory is what a container may use, in bytes.
type Memory struct {
	Limit int64
	// Free is how much functions may still use; negative if they use too much.
	Free int64
}

// MemoryWatch kills the largest function before a container has no memory left. The kernel would
// do so too, but only after it has looked for memory everywhere, and meanwhile each process of the
// container that needs a page waits, the server included. Spare processes that only a peak has kept end before a
// function does. It is safe for concurrent use; a nil MemoryWatch does nothing.
type MemoryWatch struct {
	look func() (memory Memory, ok bool)
	pool *PreforkPool // nil without

	mu      sync.Mutex
	running map[*process]int64 // with the bytes that its end will free; zero if it was not killed
	spares  map[*process]int64 // likewise, of spare processes that end
	timer   *time.Timer        // nil while none run
}

// NewMemoryWatch returns a watch of the memory that look returns, which is false if that is not known. A nil pool has
// no spare processes.
func NewMemoryWatch(look func() (memory Memory, ok bool), pool *PreforkPool) *MemoryWatch {
	return &MemoryWatch{look: look, pool: pool, running: map[*process]int64{}}
}

// add watches a process until it is removed.
func (w *MemoryWatch) add(p *process) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[p] = 0
	if w.timer == nil {
		w.timer = time.AfterFunc(memoryCheck, w.check)
	}
}

// remove ends the watch of a process that has ended.
func (w *MemoryWatch) remove(p *process) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, p)
	if len(w.running) == 0 && w.timer.Stop() { // otherwise a check is under way, which sees it
		w.timer = nil
	}
}

// check kills a function if there is no memory, and will be none when the killed ones, and spare processes, have ended.
func (w *MemoryWatch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		w.timer, w.spares = nil, nil
		return
	}
	ending := w.ending() // before look: what ends meanwhile counts twice, and not never
	memory, ok := w.look()
	if !ok {
		w.timer.Reset(time.Second)
		return
	}
	free := memory.Free + ending
	for _, freed := range w.running {
		free += freed
	}
	if free <= 0 && len(w.spares) == 0 {
		w.spares = w.pool.relieve()
		for _, freed := range w.spares { // also where one has ended already
			free += freed
		}
	}
	if free <= 0 {
		w.killLargest(memory.Limit / victimDivisor)
	}
	inTime := time.Duration(float64(free) / writeRate * float64(time.Second))
	w.timer.Reset(min(max(inTime, minMemoryCheck), memoryCheck))
}

// ending returns how many bytes spare processes will free that have not ended yet.
func (w *MemoryWatch) ending() (bytes int64) {
	for p, freed := range w.spares {
		select {
		case <-p.exited:
			delete(w.spares, p)
		default:
			bytes += freed
		}
	}
	return bytes
}

// killLargest kills the function with the most memory, more than least bytes, that was not killed yet.
func (w *MemoryWatch) killLargest(least int64) {
	var largest *process
	most := least
	for p, freed := range w.running {
		if size := residentTree(p.Pid); freed == 0 && size > most {
			largest, most = p, size
		}
	}
	if largest != nil {
		w.running[largest] = most
		largest.endForMemory()
	}
}

// maxMeasured bounds how many processes of a function are measured.
const maxMeasured = 64

// residentTree returns how many bytes of memory a process has with its descendants: the function is one of those of a
// launcher.
func residentTree(pid int) (size int64) {
	pids := []int{pid}
	for measured := 0; len(pids) > 0 && measured < maxMeasured; measured++ {
		size += resident(pids[0])
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

// resident returns how many bytes of memory a process has; zero if it has ended.
func resident(pid int) int64 {
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

// endForMemory kills the process because its container has no memory left. It ends as if the
// kernel had killed it.
func (p *process) endForMemory() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outOfMemory = true
	p.killLocked()
}

// killedForMemory reports whether endForMemory was called.
func (p *process) killedForMemory() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outOfMemory
}
