package fnproc

import "os"

// The methods of this file are for processes. A nil Reaper does nothing.

// start forks and registers the new process in one step, as far as Run can see.
func (r *Reaper) start(fork func() (*os.Process, error)) (*os.Process, error) {
	if r == nil {
		return fork()
	}
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

// forget forgets a process once it was reaped, and has its orphans looked for. Before
// that, Run would take it for an orphan and steal its exit status.
//
// There are two registrations for a moment when a pid is used again before its last owner
// is forgotten.
func (r *Reaper) forget(pid int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	if r.running[pid]--; r.running[pid] <= 0 {
		delete(r.running, pid)
	}
	r.mu.Unlock()
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}
