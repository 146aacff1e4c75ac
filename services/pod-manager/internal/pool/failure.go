// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// maxAttempts is how many pods of a function may be lost in a row before waiting
	// leases are rejected.
	maxAttempts = 3
	// minBackoff and maxBackoff bound the time after a failure in which no further pod is
	// tried. The shorter one is what a person waits for who repaired the cause.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// failureMemory is how long a failure counts for leases that come after it.
	failureMemory = time.Minute
	// maxBroken is how many leases in a row may find a pod broken that answers that it is
	// well.
	maxBroken = 3
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

// backsOff reports whether it is too early for another attempt. Those for a pod that no
// lease needs come once a minute.
func (f *failure) backsOff(needed bool, now time.Time) bool {
	return f.until.After(now) || !needed && f.backoff > 0 && now.Sub(f.at) < failureMemory
}

// over forgets what failed, since a pod became ready.
func (f *failure) over() { *f = failure{} }

// expire forgets how often attempts failed if that was long before the first of the leases
// came that wait now.
func (f *failure) expire(since time.Time) {
	if since.Sub(f.at) >= failureMemory {
		f.attempts, f.backoff = 0, 0
	}
}

// class is the class of the error that waiting leases get.
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

// failed counts a failed attempt to have a pod.
func (p *pool) failed(s *step, problem Problem) {
	p.failure.add(problem, s.at)
	s.mark(p)
}

// lose counts a pod that serves no more as a failed attempt, unless it did serve and
// another one like it would too.
//
// Pods that were lost together are one attempt: none of them was made knowing of the
// others.
func (p *pool) lose(s *step, pod *pod, problem Problem) {
	served := !pod.becameReady.at.IsZero()
	if !pod.countsAsAttempt || problem.Kind == Lost && (served || pod.known.at.Before(p.failure.at)) {
		return
	}
	p.failed(s, problem)
}

// loseDeleted counts a pod that another client deleted.
func (p *pool) loseDeleted(s *step, pod *pod) {
	p.lose(s, pod, Problem{Kind: Lost, Reason: "pod " + pod.name + " was deleted by another client before it was ready"})
}

// fail drains a pod that cannot serve.
func (p *pool) fail(s *step, pod *pod, problem Problem) {
	p.lose(s, pod, problem)
	pod.drain(s, problem.Reason, removal{eviction: evictionFailed, unsound: true})
}

// doubt checks a pod that a lease found broken, before it serves again.
func (p *pool) doubt(s *step, pod *pod, reason string) {
	if pod.state != ready && (pod.state != checking || !pod.health.suspected) {
		return // it is being checked already, or going
	}
	pod.health.suspected = false
	if pod.use.broken++; pod.use.broken >= maxBroken {
		p.fail(s, pod, Problem{Kind: Lost, Reason: "pod " + pod.name + " is broken: " + reason})
		return
	}
	if pod.state == ready {
		pod.check(s, false)
	}
}
