// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
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

// stopped reports whether the containers of a pod do not run any more. That Kubernetes has
// not reported yet that they run means nothing: a probe may have found out before.
func (p *pod) stopped(before Observation) bool {
	stalled := p.state == ready && p.seen.Problem.Kind.open()
	lostAddress := before.Address != "" && p.seen.Address == ""
	return !p.seen.running() && (p.ran || stalled || lostAddress)
}

// restart has a pod whose containers stopped become ready again.
func (p *pod) restart(now time.Time) {
	p.setState(now, starting, "")
	p.since, p.health.asked, p.ran = now, "", false
}

// probe asks a pod for its health.
func (p *pod) probe(s *step, timeout time.Duration) {
	address := cmp.Or(p.seen.HealthAddress, p.seen.Address)
	if p.health.asked == address {
		return
	}
	p.health.asked, p.health.question = address, s.event
	s.emit(Probe{Name: p.name, UID: p.uid, Address: address, Question: p.health.question, Timeout: timeout})
}

// checkTimeout is how long a pod that was found broken may take to answer.
const checkTimeout = 3 * time.Second

// check asks a pod that served for its health. Until it answers it takes no leases.
func (p *pod) check(s *step, suspected bool) {
	p.setState(s.at, checking, "an evaluation found it broken, and it is asked for its health")
	p.health.suspected = suspected
	p.probe(s, checkTimeout)
}

// stalling reports whether a problem has just lasted for too long.
func (p *pod) stalling(now time.Time, timeout time.Duration) bool {
	if p.stall.since.IsZero() || p.stall.over || now.Sub(p.stall.since) < timeout {
		return false
	}
	p.stall.over = true
	return true
}

// explainable reports whether the kubelet may still report why a pod broke: while it is
// checked, and until it is gone, since a busy node takes longer than a check does.
func (p *pod) explainable() bool {
	return p.state == checking || !p.state.usable() && p.removal.unexplained
}

// standstill is what a pod that does not become ready was last seen doing.
func (p *pod) standstill() string {
	switch reason := cmp.Or(p.seen.Problem.Reason, p.seen.Reason); {
	case reason != "":
		return reason
	case p.state == creating:
		return "Kubernetes has not confirmed it"
	case p.seen.Phase == PhaseConnecting:
		return "its containers run, but the wrapper server does not answer"
	default:
		return "its containers do not run"
	}
}

// answer has a pod serve that answered that it is well.
func (p *pod) answer(s *step) {
	if p.becameReady.at.IsZero() {
		p.becameReady = s.moment
		if !p.adopted {
			p.extend(s) // an adopted one has the expiry that its creator wrote
		}
	}
	p.setState(s.at, ready, "")
	p.health.answered = s.event
}

// overdue returns the problem of a pod that has been in its state for too long; the zero
// Problem if it has not.
func (p *pod) overdue(now time.Time) Problem {
	timeout, age := p.pool.limits.ReadyTimeout, now.Sub(p.since)
	switch {
	case p.state == checking && age >= 2*checkTimeout:
		return Problem{Kind: Lost, Reason: "pod " + p.name + " was found broken, and nothing is known of its health since"}
	case p.state == creating && age >= timeout:
		return p.late("there")
	case p.state == starting && age >= timeout:
		return p.late("ready")
	default:
		return Problem{}
	}
}

// late is the problem of a pod that took too long to be as expected.
func (p *pod) late(expected string) Problem {
	reason := fmt.Sprintf("pod %s was not %s after %s: %s", p.name, expected, p.pool.limits.ReadyTimeout, p.standstill())
	return Problem{Kind: Fatal, Reason: reason}
}
