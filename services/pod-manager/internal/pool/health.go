// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// health holds the results of a pod's probes.
type health struct {
	probedAddress string // address of the open probe, empty without a probe
	probeNumber   uint64 // number of the last probe
	// checkedEarly is true if the check began before any lease reported the pod as broken.
	checkedEarly  bool
	reportedReady bool // true if Kubernetes reported the pod as ready before
}

// stall is a problem that may pass.
type stall struct {
	since   time.Time // zero without a problem
	tooLong bool
}

// checkTimeout is the time within which a checked pod must answer.
const checkTimeout = 3 * time.Second

// probe requests the health of a pod.
func (p *pod) probe(s *step, timeout time.Duration) {
	address := cmp.Or(p.observed.HealthAddress, p.observed.Address)
	if p.health.probedAddress == address {
		return
	}
	p.health.probedAddress, p.health.probeNumber = address, s.event
	s.emit(Probe{
		Name: p.name, UID: p.uid, Address: address, Identity: p.observed.Identity, Question: p.health.probeNumber,
		Timeout: timeout,
	})
}

// endProbe cancels a pod's open probe.
func (p *pod) endProbe(s *step) {
	if p.health.probedAddress != "" {
		p.health.probedAddress = ""
		s.emit(Unprobe{Name: p.name, UID: p.uid})
	}
}

// check probes a pod that served. It gets no leases until it answers.
func (p *pod) check(s *step, early bool, why string) {
	p.setState(s.at, checking, why)
	p.health.checkedEarly = early
	p.probe(s, checkTimeout)
}

// whyChecked is the usual reason of a check.
const whyChecked = "an evaluation found it broken, and its health is being probed"

// markReady makes a pod ready after a healthy answer.
func (p *pod) markReady(s *step) {
	if p.becameReady.at.IsZero() {
		p.becameReady = s.moment
		if !p.adopted {
			p.extendExpiry(s) // adopted pods keep the expiry of their creator
		}
	}
	p.setState(s.at, ready, "")
}

// containersStopped reports whether the containers of a pod no longer run. A missing report that they run is no
// evidence, because a probe may be faster than the report.
func (p *pod) containersStopped(before Observation) bool {
	stalled := p.state == ready && p.observed.Problem.Kind.mayPass()
	lostAddress := before.Address != "" && p.observed.Address == ""
	return !p.observed.containersRun() && (p.ran || stalled || lostAddress)
}

// lostReadiness reports whether Kubernetes no longer reports a serving pod as ready, for instance because its node is
// not ready.
func (p *pod) lostReadiness(before Observation) bool {
	return p.state == ready && before.Ready && !p.observed.Ready && p.observed.Address != ""
}

// restart returns a pod with stopped containers to starting.
func (p *pod) restart(now time.Time) {
	p.setState(now, starting, "")
	p.since, p.health.probedAddress, p.ran = now, "", false
}

// awaitsExplanation reports whether the kubelet may still report the cause of a failure: while the pod is checked, and
// until it is gone, because a busy node needs longer than a check.
func (p *pod) awaitsExplanation() bool {
	return p.state == checking || !p.state.usable() && p.removal.unexplained
}

// stallTimeout returns the time after which a problem of the pod makes waiting leases fail. An autoscaler may need
// minutes to add a node. Other problems, such as an unavailable registry, justify a short wait only.
func (p *pod) stallTimeout(unscheduled time.Duration) time.Duration {
	if p.observed.Phase == PhaseScheduling {
		return unscheduled
	}
	return min(unscheduled, 2*time.Second)
}

// startsStalling reports whether a problem has just exceeded its timeout.
func (p *pod) startsStalling(now time.Time, timeout time.Duration) bool {
	if p.stall.since.IsZero() || p.stall.tooLong || now.Sub(p.stall.since) < timeout {
		return false
	}
	p.stall.tooLong = true
	return true
}

// overdueProblem returns the problem of a pod that exceeds the timeout of its state, else the zero Problem.
func (p *pod) overdueProblem(now time.Time, unscheduled time.Duration) Problem {
	timeout, age := p.pool.limits.ReadyTimeout, now.Sub(p.since)
	switch {
	case p.state == checking && age >= 2*checkTimeout:
		return Problem{Kind: Lost, Reason: "pod " + p.name + " was found broken, and nothing is known of its health since"}
	case p.state == creating && age >= timeout:
		return p.lateProblem("there")
	case p.state == starting && p.observed.Phase == PhaseScheduling && age < timeout+unscheduled:
		return Problem{} // the timeout starts when the pod gets a node
	case p.state == starting && age >= timeout:
		return p.lateProblem("ready")
	default:
		return Problem{}
	}
}

// lateProblem returns the problem of a pod that exceeds the ready timeout.
func (p *pod) lateProblem(expected string) Problem {
	reason := fmt.Sprintf("pod %s was not %s after %s: %s", p.name, expected, p.pool.limits.ReadyTimeout, p.lastProgress())
	return Problem{Kind: Fatal, Reason: reason}
}

// lastProgress returns the last reported progress of a pod that does not become ready.
func (p *pod) lastProgress() string {
	switch reason := cmp.Or(p.observed.Problem.Reason, p.observed.Reason); {
	case reason != "":
		return reason
	case p.state == creating:
		return "Kubernetes has not confirmed it"
	case p.observed.Phase == PhaseConnecting:
		return "its containers run, but the wrapper server does not answer"
	default:
		return "its containers do not run"
	}
}

const (
	// maxAttempts is the number of consecutive lost pods after which waiting leases are rejected.
	maxAttempts = 3
	// minBackoff and maxBackoff bound the delay after a failed attempt.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// failureMemory is the time for which a failure counts for later leases.
	failureMemory = time.Minute
	// maxBroken is the maximum number of consecutive leases that report a pod as broken while its probes succeed.
	maxBroken = 3
)

// failure describes the last failed attempts to create a pod.
type failure struct {
	problem  Problem
	at       time.Time
	attempts int // consecutive attempts without a ready pod
	backoff  time.Duration
	until    time.Time
}

// countAttempt counts a failed attempt.
func (f *failure) countAttempt(problem Problem, now time.Time) {
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

// backsOff reports whether it is too early for the next attempt. If no lease needs the pod, attempts are a minute
// apart.
func (f *failure) backsOff(needed bool, now time.Time) bool {
	return f.until.After(now) || !needed && f.backoff > 0 && now.Sub(f.at) < failureMemory
}

// reset clears the failed attempts: a pod became ready, or the cause changed.
func (f *failure) reset() { *f = failure{} }

// forgetOld clears attempts and backoff if the last failure was at least failureMemory before since, the request time
// of the oldest waiting lease.
func (f *failure) forgetOld(since time.Time) {
	if since.Sub(f.at) >= failureMemory {
		f.attempts, f.backoff = 0, 0
	}
}

// faultClass returns the error class for waiting leases.
func (k ProblemKind) faultClass() fault.Class {
	switch k {
	case Lost, Held:
		return fault.Unavailable
	case Fatal, Stuck:
		return fault.Precondition
	case Full:
		return fault.Exhausted
	default:
		return fault.Internal
	}
}

// countFailure counts a failed attempt to create a pod.
func (p *pool) countFailure(s *step, problem Problem) {
	p.failure.countAttempt(problem, s.at)
	s.markDirty(p)
}

// countLoss counts a lost pod as a failed attempt, unless the pod was ready and a new pod may work. Pods that are lost
// together count once.
func (p *pool) countLoss(s *step, pod *pod, problem Problem) {
	wasReady := !pod.becameReady.at.IsZero()
	if !pod.countsAsAttempt || problem.Kind == Lost && (wasReady || pod.learnedAt.at.Before(p.failure.at)) {
		return
	}
	p.countFailure(s, problem)
}

// countDeletion counts a pod that another client deleted.
func (p *pool) countDeletion(s *step, pod *pod) {
	reason := "pod " + pod.name + " was deleted by another client before it was ready"
	p.countLoss(s, pod, Problem{Kind: Lost, Reason: reason})
}

// drainFailed drains a broken pod, and counts its loss.
func (p *pool) drainFailed(s *step, pod *pod, problem Problem) {
	p.countLoss(s, pod, problem)
	pod.drain(s, problem.Reason, removal{eviction: evictionFailed, unsound: true})
}

// recheckBroken checks a pod that a lease reported as broken. The pod gets no leases until it answers. After maxBroken
// consecutive reports the pod is drained.
func (p *pool) recheckBroken(s *step, pod *pod, reason string) {
	if pod.state != ready && (pod.state != checking || !pod.health.checkedEarly) {
		return // already checked, or leaving
	}
	pod.health.checkedEarly = false
	if pod.use.broken++; pod.use.broken >= maxBroken {
		p.drainFailed(s, pod, Problem{Kind: Lost, Reason: "pod " + pod.name + " is broken: " + reason})
		return
	}
	if pod.state == ready {
		pod.check(s, false, whyChecked)
	}
}
