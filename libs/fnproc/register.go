package fnproc

import "os"

// The methods of this file are for Runner. A nil Reaper does nothing.

// begin notes that an evaluation begins; the function that it returns notes its end.
func (r *Reaper) begin() (end func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	evaluation := r.books.begin()
	return func() { r.end(evaluation) }
}

func (r *Reaper) end(evaluation uint64) {
	r.mu.Lock()
	r.books.end(evaluation)
	r.mu.Unlock()
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

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
	r.books.started(p.Pid)
	return p, nil
}

// forget takes a process out of the books once it was reaped. Before that, Run would
// take it for an orphan and steal its exit status.
func (r *Reaper) forget(pid int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.books.forget(pid)
}
