package fnproc

import "os"

// The methods of this file are for processes. A nil Reaper does nothing.

// begin notes that an evaluation begins, and returns its number.
func (r *Reaper) begin() (number uint64) {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.books.begin()
}

// end notes that an evaluation has ended.
func (r *Reaper) end(number uint64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.books.end(number)
	delete(r.idle, number)
	r.mu.Unlock()
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// waits notes that an evaluation waits for its input. Run may call retire, which must
// not call the Reaper; it does nothing if the evaluation got its input meanwhile.
func (r *Reaper) waits(number uint64, retire func()) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle[number] = retire
}

// taken notes that an evaluation gets its input.
func (r *Reaper) taken(number uint64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.idle, number)
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
