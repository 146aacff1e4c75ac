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
	probedAddress string // address of the open probe; it is empty if no probe is open
	probeNumber   uint64 // number of the last probe
	// checkedEarly is true if the pod's check began before any lease reported the pod as broken.
	checkedEarly  bool
	reportedReady bool // true if Kubernetes reported the pod as ready before
}

// stall tracks for how long a pod has a problem that may pass by itself.
type stall struct {
	since   time.Time // start of the problem; it is zero without a problem
	tooLong bool
}

// checkTimeout is the time within which a pod in the state checking must answer its probe.
const checkTimeout = 3 * time.Second

// probe emits a [Probe] of a pod, unless a probe of the pod's current address is open. A zero timeout means no limit.
func (p *pod) probe(s *step, timeout time.Duration) {
	address := cmp.Or(p.observed.HealthAddress, p.observed.Address)
	if p.health.probedAddress == address {
		return
	}
	p.health.probedAddress = address
	p.health.probeNumber = s.event
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

// check moves a ready pod to the state checking and probes it. The pod gets no leases until it answers.
func (p *pod) check(s *step, early bool, why string) {
	p.setState(s.at, checking, why)
	p.health.checkedEarly = early
	p.probe(s, checkTimeout)
}

// whyChecked is the reason of a check, for users, after a lease reported the pod as broken.
const whyChecked = "an evaluation found it broken, and its health is being probed"

// markReady makes a pod ready after a healthy answer.
func (p *pod) markReady(s *step) {
	if p.becameReady.at.IsZero() {
		p.becameReady = s.moment
		if !p.adopted {
			p.extendExpiry(s) // adopted pods keep the expiry that their creator wrote
		}
	}
	p.setState(s.at, ready, "")
}

// containersStopped reports whether the containers of a pod stopped. It requires evidence that they ran, because a
// probe may succeed before Kubernetes reports that the containers run. before is the previous observation.
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

// restart returns a pod whose containers stopped to the state starting.
func (p *pod) restart(now time.Time) {
	p.setState(now, starting, "")
	p.since = now
	p.health.probedAddress = ""
	p.ran = false
}

// awaitsExplanation reports whether the kubelet may still report the cause of a pod's failure. This lasts until the
// pod is gone, and not only until the end of its check, because a busy node needs longer.
func (p *pod) awaitsExplanation() bool {
	return p.state == checking || (!p.state.usable() && p.removal.unexplained)
}

// stallTimeout returns the time after which a problem of the pod makes waiting leases fail. It is long for a pod
// without a node, because an autoscaler may need minutes to add a node. It is short for other problems, such as an
// unavailable registry.
func (p *pod) stallTimeout(unscheduled time.Duration) time.Duration {
	if p.observed.Phase == PhaseScheduling {
		return unscheduled
	}
	return min(unscheduled, 2*time.Second)
}

// startsStalling reports whether a pod's problem exceeds its timeout, and returns true only once per problem.
func (p *pod) startsStalling(now time.Time, timeout time.Duration) bool {
	if p.stall.since.IsZero() || p.stall.tooLong || now.Sub(p.stall.since) < timeout {
		return false
	}
	p.stall.tooLong = true
	return true
}

// overdueProblem returns a problem if a pod exceeds the timeout of its state. Otherwise it returns the zero Problem.
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

// lateProblem returns the problem of a pod that exceeds the ready timeout. expected is the part of the reason that
// follows "was not".
func (p *pod) lateProblem(expected string) Problem {
	reason := fmt.Sprintf("pod %s was not %s after %s: %s", p.name, expected, p.pool.limits.ReadyTimeout, p.lastProgress())
	return Problem{Kind: Fatal, Reason: reason}
}

// lastProgress returns a text about the last reported progress of a pod that does not become ready.
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
	// maxAttempts is the number of consecutive lost pods after which the waiting leases of their pool are rejected.
	maxAttempts = 3
	// minBackoff and maxBackoff limit the delay before the next pod is created after a failed attempt. The limit is
	// maxHeldBackoff if the cause is temporary, because the leases wait for the next attempt.
	minBackoff     = time.Second
	maxBackoff     = 30 * time.Second
	maxHeldBackoff = 4 * time.Second
	// failureMemory is the time for which a failed attempt affects later leases.
	failureMemory = time.Minute
	// maxBroken is the number of consecutive leases that report a pod as broken, after which the pod is drained even
	// though its probes succeed.
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

// countAttempt counts a failed attempt to create a pod. It starts or doubles the backoff. For lost pods, the backoff
// starts only after maxAttempts attempts.
func (f *failure) countAttempt(problem Problem, now time.Time) {
	if problem.Kind == None {
		problem.Kind = Lost
	}
	f.problem = problem
	f.at = now
	longest := maxBackoff
	if problem.Kind == Held {
		longest = maxHeldBackoff
	} else if f.attempts++; problem.Kind == Lost && f.attempts < maxAttempts {
		return
	}
	f.backoff = min(max(2*f.backoff, minBackoff), longest)
	f.until = now.Add(f.backoff)
}

// backsOff reports whether it is too early for the next attempt. needed is false if no lease needs the pod. In this
// case, attempts are failureMemory apart.
func (f *failure) backsOff(needed bool, now time.Time) bool {
	return f.until.After(now) || (!needed && f.backoff > 0 && now.Sub(f.at) < failureMemory)
}

// reset clears the failed attempts, after a pod became ready or after the possible cause was removed.
func (f *failure) reset() { *f = failure{} }

// forgetOld clears attempts and backoff if the last failure is old: at least failureMemory before since. since is the
// request time of the oldest waiting lease.
func (f *failure) forgetOld(since time.Time) {
	if since.Sub(f.at) >= failureMemory {
		f.attempts, f.backoff = 0, 0
	}
}

// faultClass returns the class of the error that waiting leases get.
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

// countLoss counts a lost pod as a failed attempt. It does not count a pod that was ready, if a new pod may work. Of
// several pods that are lost together, it counts one.
func (p *pool) countLoss(s *step, pod *pod, problem Problem) {
	wasReady := !pod.becameReady.at.IsZero()
	if !pod.countsAsAttempt || (problem.Kind == Lost && (wasReady || pod.learnedAt.at.Before(p.failure.at))) {
		return
	}
	p.countFailure(s, problem)
}

// countDeletion counts a pod that another client deleted as a failed attempt.
func (p *pool) countDeletion(s *step, pod *pod) {
	reason := "pod " + pod.name + " was deleted by another client before it was ready"
	p.countLoss(s, pod, Problem{Kind: Lost, Reason: reason})
}

// drainFailed drains a broken pod, and counts it as a failed attempt, see countLoss.
func (p *pool) drainFailed(s *step, pod *pod, problem Problem) {
	p.countLoss(s, pod, problem)
	pod.drain(s, problem.Reason, removal{eviction: evictionFailed, unsound: true})
}

// recheckBroken handles a lease's report that a pod is broken. It checks the pod. The pod gets no leases until it
// answers. After maxBroken consecutive reports, it drains the pod.
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
