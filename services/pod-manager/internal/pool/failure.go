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
	// minBackoff and maxBackoff bound the wait after a failed attempt.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// failureMemory is how long a failure counts for leases that come after it.
	failureMemory = time.Minute
	// maxBroken is how many leases in a row may report a pod as broken although it answers
	// that it is healthy.
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

// reset forgets the failed attempts: a pod became ready, or what they were due to has changed.
func (f *failure) reset() { *f = failure{} }

// expire resets attempts and backoff if the last failure was at least failureMemory before since, when
// the oldest waiting lease was requested.
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

// countFailure counts a failed attempt to have a pod.
func (p *pool) countFailure(s *step, problem Problem) {
	p.failure.add(problem, s.at)
	s.mark(p)
}

// countLoss counts a lost pod as a failed attempt, unless it was ready and a new one may work. Pods
// that were lost together count once.
func (p *pool) countLoss(s *step, pod *pod, problem Problem) {
	wasReady := !pod.becameReady.at.IsZero()
	if !pod.countsAsAttempt || problem.Kind == Lost && (wasReady || pod.known.at.Before(p.failure.at)) {
		return
	}
	p.countFailure(s, problem)
}

// countDeletion counts a pod that another client deleted.
func (p *pool) countDeletion(s *step, pod *pod) {
	reason := "pod " + pod.name + " was deleted by another client before it was ready"
	p.countLoss(s, pod, Problem{Kind: Lost, Reason: reason})
}

// drainFailed drains a pod that cannot serve, and counts its loss.
func (p *pool) drainFailed(s *step, pod *pod, problem Problem) {
	p.countLoss(s, pod, problem)
	pod.drain(s, problem.Reason, removal{eviction: evictionFailed, unsound: true})
}

// recheck checks a pod that a lease found broken, before the pod gets leases again. One that
// leases find broken too often is drained.
func (p *pool) recheck(s *step, pod *pod, reason string) {
	if pod.state != ready && (pod.state != checking || !pod.health.suspected) {
		return // it is being checked already, or going
	}
	pod.health.suspected = false
	if pod.use.broken++; pod.use.broken >= maxBroken {
		p.drainFailed(s, pod, Problem{Kind: Lost, Reason: "pod " + pod.name + " is broken: " + reason})
		return
	}
	if pod.state == ready {
		pod.check(s, false)
	}
}

// suspect asks a pod whose caller left without an answer for its health: a pod that hangs reports no
// error, and each of its callers waits for as long as it can. Most callers leave for reasons of
// their own, so the pod takes leases meanwhile, if no other does.
func (p *pool) suspect(s *step, pod *pod) {
	if pod.state == ready && !pod.doubted() {
		pod.health.doubted = s.at
		pod.probe(s, checkTimeout)
	}
}

// checkDoubted checks the pods that should have answered by now.
func (p *pool) checkDoubted(s *step) {
	for _, pod := range p.pods {
		if pod.doubted() && s.age(pod.health.doubted) >= doubtTimeout {
			pod.check(s, true)
			pod.why = "a caller left without an answer, and it has not answered since"
		}
	}
}
