// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"os"
	"sync"
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
}

var functions = registry{running: map[int]int{}}

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
