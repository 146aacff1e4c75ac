// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// registry is the functions that run. A process has one, as it has one set of children,
// whatever number of Reapers and Runners it has.
type registry struct {
	// starts is held for reading while a function is started, so that its pid is registered
	// before it can be taken for an orphan.
	starts sync.RWMutex
	mu     sync.Mutex
	// running counts the registrations of each pid, which is also that of a session. There
	// are two for a moment when a pid is used again before its last owner is forgotten.
	running map[int]int
	// outputs are the pipes of outputs that are being read, as links of descriptors show them.
	outputs map[string]bool
}

var functions = registry{running: map[int]int{}, outputs: map[string]bool{}}

// addOutput registers a pipe. A Reaper kills no process that can write to it: what it wrote would be cut.
func (r *registry) addOutput(pipe *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs[pipeLink(pipe)] = true
}

func (r *registry) removeOutput(pipe *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outputs, pipeLink(pipe))
}

// pipeLink returns what the link of a pipe's descriptor in /proc reads.
func pipeLink(pipe *os.File) string {
	info, err := pipe.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("pipe:[%d]", stat.Ino)
}

// holdsOutput reports whether a process has an output open that is being read. The caller holds mu.
func (r *registry) holdsOutput(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	descriptors, _ := os.ReadDir(dir)
	return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		link, _ := os.Readlink(filepath.Join(dir, d.Name()))
		return r.outputs[link]
	})
}

// start forks and registers the new process in one step, as far as a Reaper can see.
func (r *registry) start(fork func() (*os.Process, error)) (*os.Process, error) {
	r.starts.RLock()
	defer r.starts.RUnlock()
	p, err := fork()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[p.Pid]++
	return p, nil
}

// forget forgets a process once it was reaped. Before that, a Reaper would take it for an
// orphan and steal its exit status.
func (r *registry) forget(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[pid]--; r.running[pid] <= 0 {
		delete(r.running, pid)
	}
}

// hold waits until no start is under way, and keeps functions from being started and
// forgotten until release is called.
func (r *registry) hold() (release func()) {
	r.starts.Lock()
	r.mu.Lock()
	return func() {
		r.mu.Unlock()
		r.starts.Unlock()
	}
}
