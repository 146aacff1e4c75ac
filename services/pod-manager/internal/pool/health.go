// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"time"
)

// probe asks a pod for its health.
func (p *pod) probe(s *step, timeout time.Duration) {
	address := cmp.Or(p.seen.HealthAddress, p.seen.Address)
	if p.health.asked == address {
		return
	}
	p.health.asked, p.health.question = address, s.event
	s.emit(Probe{
		Name: p.name, UID: p.uid, Address: address, Identity: p.seen.Identity, Question: p.health.question,
		Timeout: timeout,
	})
}

// doubtTimeout is how long a pod whose caller left without an answer takes further leases while it is asked
// for its health. A wrapper server answers within milliseconds, on a busy node too.
const doubtTimeout = 500 * time.Millisecond

// doubted reports whether a pod takes leases, and is asked for its health.
func (p *pod) doubted() bool { return !p.health.doubted.IsZero() }

// checkTimeout is how long a pod that was found broken may take to answer.
const checkTimeout = 3 * time.Second

// check asks a pod that served for its health. Until it answers it takes no leases.
func (p *pod) check(s *step, suspected bool) {
	p.setState(s.at, checking, "an evaluation found it broken, and it is asked for its health")
	p.health.suspected = suspected
	p.probe(s, checkTimeout)
}

// markReady makes a pod ready that answered that it is healthy.
func (p *pod) markReady(s *step) {
	if p.becameReady.at.IsZero() {
		p.becameReady = s.moment
		if !p.adopted {
			p.extend(s) // an adopted one has the expiry that its creator wrote
		}
	}
	p.setState(s.at, ready, "")
	p.health.answered = s.event
}

// stopped reports whether the containers of a pod do not run any more. That Kubernetes has
// not reported yet that they run means nothing: a probe may have found out before.
func (p *pod) stopped(before Observation) bool {
	stalled := p.state == ready && p.seen.Problem.Kind.open()
	lostAddress := before.Address != "" && p.seen.Address == ""
	return !p.seen.running() && (p.ran || stalled || lostAddress)
}

// restart returns a pod whose containers stopped to starting.
func (p *pod) restart(now time.Time) {
	p.setState(now, starting, "")
	p.since, p.health.asked, p.ran = now, "", false
}

// explainable reports whether the kubelet may still report why a pod broke: while it is
// checked, and until it is gone, since a busy node takes longer than a check does.
func (p *pod) explainable() bool {
	return p.state == checking || !p.state.usable() && p.removal.unexplained
}

// stallTimeout is how long a problem of the pod may last until waiting leases are rejected. An autoscaler may take minutes
// to add a node; other problems, such as a registry that is away, are worth a short wait.
func (p *pod) stallTimeout(unscheduled time.Duration) time.Duration {
	if p.seen.Phase == PhaseScheduling {
		return unscheduled
	}
	return min(unscheduled, 2*time.Second)
}

// stalling reports whether a problem has just lasted for too long.
func (p *pod) stalling(now time.Time, timeout time.Duration) bool {
	if p.stall.since.IsZero() || p.stall.tooLong || now.Sub(p.stall.since) < timeout {
		return false
	}
	p.stall.tooLong = true
	return true
}

// overdue returns the problem of a pod that has been in its state for too long; the zero
// Problem if it has not.
func (p *pod) overdue(now time.Time, unscheduled time.Duration) Problem {
	timeout, age := p.pool.limits.ReadyTimeout, now.Sub(p.since)
	switch {
	case p.state == checking && age >= 2*checkTimeout:
		return Problem{Kind: Lost, Reason: "pod " + p.name + " was found broken, and nothing is known of its health since"}
	case p.state == creating && age >= timeout:
		return p.late("there")
	case p.state == starting && p.seen.Phase == PhaseScheduling && age < timeout+unscheduled:
		return Problem{} // its time begins when it has a node
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
