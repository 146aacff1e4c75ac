package pool

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// maxAttempts is how many pods of a function may be lost in a row before those
	// who wait are told.
	maxAttempts = 3
	// minBackoff and maxBackoff bound the time after a failure in which no further
	// pod is tried. The shorter one is what a person waits for who repaired the cause.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// failureMemory is how long a failure counts for those who come after it.
	failureMemory = time.Minute
)

// failure is why the last attempts to have a pod failed.
type failure struct {
	problem  Problem
	at       time.Time
	attempts int // in a row, without a pod that became ready
	backoff  time.Duration
	until    time.Time
}

// add counts a failed attempt.
func (f *failure) add(problem Problem, now time.Time) {
	if problem.Kind == None {
		problem.Kind = Lost
	}
	f.problem, f.at = problem, now
	f.attempts++
	if problem.Kind == Lost && f.attempts < maxAttempts {
		return
	}
	f.backoff = min(max(2*f.backoff, minBackoff), maxBackoff)
	f.until = now.Add(f.backoff)
}

// failed takes note of a pod that came to nothing.
func (m *Machine) failed(p *pool, problem Problem) {
	p.failure.add(problem, m.now)
	m.touch(p)
}

// backsOff reports whether it is too early for another attempt. Those for a pod that no
// lease needs come once a minute.
func (f *failure) backsOff(needed bool, now time.Time) bool {
	return f.until.After(now) || !needed && f.backoff > 0 && now.Sub(f.at) < failureMemory
}

// over forgets what failed, since a pod became ready.
func (f *failure) over() { *f = failure{} }

// expire forgets how often it failed if that was long before anybody came of those
// who wait now.
func (f *failure) expire(since time.Time) {
	if since.Sub(f.at) >= failureMemory {
		f.attempts, f.backoff = 0, 0
	}
}

// class is the class of the error that those get who wait.
func (k ProblemKind) class() fault.Class {
	switch k {
	case Lost, Held:
		return fault.Unavailable
	case Fatal, Stuck:
		return fault.Precondition
	default:
		return fault.Internal
	}
}
