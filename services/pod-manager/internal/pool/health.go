// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// health contains the state of a pod's probes.
type health struct {
	probedAddress string // address of the running probe, or empty
	probeNumber   uint64 // number of the last probe
	// checkedEarly is true if the check began before a caller reported the pod as broken.
	checkedEarly bool
}

// checkTimeout is the timeout of a probe that checks a possibly broken pod. The pod gets no leases during the check.
const checkTimeout = 3 * time.Second

// probe starts a health probe of a pod, unless a probe of its current address is running. Timeout zero means no limit.
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

// endProbe cancels a pod's running probe.
func (p *pod) endProbe(s *step) {
	if p.health.probedAddress != "" {
		p.health.probedAddress = ""
		s.emit(Unprobe{Name: p.name, UID: p.uid})
	}
}

// check probes a ready pod that may be broken. The pod gets no leases until it answers. The argument early is true if
// no lease has reported the pod as broken. The reason is shown to users.
func (p *pod) check(s *step, early bool, reason string) {
	p.setState(s.at, checking, reason)
	p.health.checkedEarly = early
	p.probe(s, checkTimeout)
}

// whyChecked is the reason that users see while a pod is probed because an evaluation found it broken.
const whyChecked = "an evaluation found it broken, and its health is being probed"

// markReady moves a pod to the state ready after a probe found it healthy.
func (p *pod) markReady(s *step) {
	if p.becameReady.at.IsZero() {
		p.becameReady = s.moment
		if !p.adopted {
			p.extendExpiry(s) // adopted pods keep the expiry that their creator wrote
		}
	}
	p.setState(s.at, ready, "")
}

// containersStopped reports whether a pod's containers stopped since the previous observation. A pod can be ready
// before Kubernetes reports that its containers run. The missing report therefore does not mean that they stopped.
func (p *pod) containersStopped(before Observation) bool {
	stalled := p.state == ready && p.observed.Problem.Kind.mayPass()
	lostAddress := before.Address != "" && p.observed.Address == ""
	return !p.observed.containersRun() && (p.ran || stalled || lostAddress)
}

// lostReadiness reports whether Kubernetes no longer reports a serving pod as ready, for instance after a node failure.
func (p *pod) lostReadiness(before Observation) bool {
	return p.state == ready && before.Ready && !p.observed.Ready && p.observed.Address != ""
}

// restart moves a pod with stopped containers back to the state starting, because Kubernetes may restart them.
func (p *pod) restart(now time.Time) {
	p.setState(now, starting, "")
	p.since = now
	p.health.probedAddress = ""
	p.ran = false
}

// awaitsExplanation reports whether the kubelet may still report the cause of a pod's failure. The kubelet of a busy
// node may send this report after the pod's health check has failed, but never after the pod's deletion.
func (p *pod) awaitsExplanation() bool {
	return p.state == checking || (!p.state.usable() && p.removal.unexplained)
}

// isStalled reports whether a pod's problem lasted so long that waiting leases must fail. For a pod without a node, the
// limit is the argument unscheduled, because an autoscaler may need minutes to add a node. For other problems, such as
// an unavailable registry, the limit is 2 seconds, or unscheduled if it is shorter.
func (p *pod) isStalled(now time.Time, unscheduled time.Duration) bool {
	timeout := min(unscheduled, 2*time.Second)
	if p.observed.Phase == PhaseScheduling {
		timeout = unscheduled
	}
	return !p.stalledSince.IsZero() && now.Sub(p.stalledSince) >= timeout
}

// overdueProblem returns a problem if a pod exceeded the timeout of its state, or the zero Problem.
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

// lateProblem returns the problem of a pod that exceeded its timeout. The argument expected is the state that the pod
// did not reach: "ready", or "there" if Kubernetes never reported the pod.
func (p *pod) lateProblem(expected string) Problem {
	reason := fmt.Sprintf("pod %s was not %s after %s: %s", p.name, expected, p.pool.limits.ReadyTimeout, p.lastProgress())
	return Problem{Kind: Fatal, Reason: reason}
}

// lastProgress describes, for users, the last reported progress of a pod that does not become ready.
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
	// maxAttempts is the number of consecutive failed attempts after which waiting leases are rejected. It applies to
	// problems of kind [Lost], for example if new pods are lost before they become ready.
	maxAttempts = 3
	// minBackoff and maxBackoff limit the delay before the next attempt to create a pod. After a temporary problem
	// ([Held]), the maximum is maxHeldBackoff. It is shorter, because leases continue to wait for the next attempt.
	minBackoff     = time.Second
	maxBackoff     = 30 * time.Second
	maxHeldBackoff = 4 * time.Second
	// failureMemory is the time after which a failed attempt to create a pod no longer affects new leases.
	failureMemory = time.Minute
	// maxBroken is the number of consecutive leases that report a pod as broken. The pod is then drained even if its
	// probes succeed.
	maxBroken = 3
)

// failure describes a pool's recent failed attempts to create a pod.
type failure struct {
	problem  Problem
	at       time.Time
	attempts int // consecutive attempts without a ready pod
	backoff  time.Duration
	until    time.Time
}

// countAttempt counts a failed attempt to create a pod, and delays the next attempt. The delay doubles with each
// attempt. If the problem is [Lost], the first two attempts are retried without a delay (see maxAttempts).
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

// backsOff reports whether the next attempt to create a pod must still wait. needed is true if a lease needs the pod.
// Otherwise, attempts wait for at least a minute (failureMemory) after the last failure.
func (f *failure) backsOff(needed bool, now time.Time) bool {
	return f.until.After(now) || (!needed && f.backoff > 0 && now.Sub(f.at) < failureMemory)
}

// faultClass returns the class of error, such as Unavailable, that waiting callers get for the problem.
func (k ProblemKind) faultClass() fault.Class {
	switch k {
	case Lost, Held:
		return fault.Unavailable
	case Fatal, Stuck:
		return fault.Precondition
	default:
		return fault.Internal
	}
}

// countFailure counts a failed attempt to create a pod of the pool.
func (p *pool) countFailure(s *step, problem Problem) {
	p.failure.countAttempt(problem, s.at)
	s.markDirty(p)
}

// countLoss counts the loss of a pod as a failed attempt to create a pod. There are exceptions. A pod that was ready
// counts only if new pods would have the same problem. If several pods are lost together, only the first counts.
func (p *pool) countLoss(s *step, pod *pod, problem Problem) {
	wasReady := !pod.becameReady.at.IsZero()
	if !pod.countsAsAttempt || (problem.Kind == Lost && (wasReady || pod.learnedAt.at.Before(p.failure.at))) {
		return
	}
	p.countFailure(s, problem)
}

// countDeletion counts a pod that another client deleted before it was ready as a failed attempt to create a pod.
func (p *pool) countDeletion(s *step, pod *pod) {
	reason := "pod " + pod.name + " was deleted by another client before it was ready"
	p.countLoss(s, pod, Problem{Kind: Lost, Reason: reason})
}

// drainFailed drains a broken pod. The loss may count as a failed attempt to create a pod, see countLoss.
func (p *pool) drainFailed(s *step, pod *pod, problem Problem) {
	p.countLoss(s, pod, problem)
	pod.drain(s, problem.Reason, removal{eviction: evictionFailed, unsound: true})
}

// recheckBroken probes a pod that a caller reported as broken. The pod gets no leases until it answers. After 3
// consecutive reports (maxBroken), the pod is drained instead.
func (p *pool) recheckBroken(s *step, pod *pod, reason string) {
	if pod.state != ready && (pod.state != checking || !pod.health.checkedEarly) {
		return // the pod is already being checked or removed
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
