package pool

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// state is where a pod is in its life. The package comment has the transitions.
type state int

const (
	creating state = iota // asked for, not yet seen
	starting              // on its way to readiness
	ready                 // takes leases
	checking              // was found broken, and is asked for its health
	draining              // takes no leases, and is deleted once it has none
	deleting              // its deletion is under way
)

// usable reports whether a pod takes leases or will.
func (s state) usable() bool { return s <= checking }

// stage returns the first state of a group, of which one time is kept: a pod that is seen
// has been starting since it was created, and one that is deleted since it was drained.
func (s state) stage() state {
	switch s {
	case starting:
		return creating
	case deleting:
		return draining
	default:
		return s
	}
}

// pod is one function pod.
type pod struct {
	pool      *pool
	limits    *Limits // of its pool
	slot      int
	id        string // by which its Service finds it
	name, uid string
	seen      Observation

	state state
	why   string    // it is in this state, for people
	since time.Time // when this stage began

	adopted bool
	// countsAsAttempt reports whether losing this pod counts as a failed attempt to have
	// one. It is false for pods that had already terminated when first observed.
	countsAsAttempt bool
	foundRunning    bool      // its containers ran already when it was adopted
	ran             bool      // Kubernetes reported that its containers run
	created         time.Time // by Kubernetes' clock, once it is known there
	known           moment    // when this machine learned of it
	becameReady     moment    // zero until it was ready once

	expiry  expiry
	use     use
	health  health
	stall   stall
	removal removal
}

// use is what leases do with a pod.
type use struct {
	active int // leases that it holds
	total  int64
	turn   uint64 // when it was chosen last, in grants
	broken int    // leases in a row that found it broken
}

// health is what a pod answered about its health.
type health struct {
	asked    string // the address of an open question; empty if there is none
	question uint64 // the last one
	answered uint64 // the event by which it last answered that it is well
	// suspected reports whether the pod is checked before any lease has ended as broken.
	suspected bool
}

// stall is a problem that the pod may still overcome.
type stall struct {
	since time.Time // zero if there is none
	over  bool      // it has lasted for too long
}

// removal is why a pod is deleted.
type removal struct {
	eviction string // the kind of reason, for metrics
	// idle reports whether the pod was chosen since no lease used it, as evictionTTL
	// does: another replica's use undoes it.
	idle bool
	// unsound reports whether the pod does not serve: it is deleted in any version.
	unsound bool
	// unexplained reports whether it stopped answering, and the kubelet has not said why.
	unexplained bool
	retryAt     time.Time // when to emit its deletion again
}

// evictionTTL is the kind of eviction that another replica's use of the pod undoes.
const evictionTTL = "ttl"

// setState moves a pod to another state, for a reason that people read.
func (p *pod) setState(now time.Time, to state, why string) {
	if to.stage() != p.state.stage() {
		p.since = now
	}
	p.state, p.why = to, why
}

// serves reports whether a pod is known to be there, and takes leases or will.
func (p *pod) serves() bool { return p.state.usable() && p.uid != "" }

// served reports whether a pod has been ready, and takes leases or may again.
func (p *pod) served() bool { return p.state == ready || p.state == checking }

// phase is the step that a pod is at on its way to readiness.
func (p *pod) phase() Phase {
	if p.state == creating {
		return PhaseCreating
	}
	return p.seen.Phase
}

// version is what the pod was made from.
func (p *pod) version() version { return version{p.seen.TemplateVersion, p.seen.SettingsVersion} }

// older reports whether Kubernetes has had p for longer than other.
func (p *pod) older(other *pod) bool {
	if !p.seen.Created.Equal(other.seen.Created) {
		return p.seen.Created.Before(other.seen.Created)
	}
	return p.name < other.name
}

// newerThan reports whether the last observation of a pod is newer than another one, as far
// as versions tell: those of Kubernetes are numbers that grow. An address that is missing
// from the same version was only not known yet.
func (p *pod) newerThan(o Observation) bool {
	if p.uid != o.UID {
		return false
	}
	last, errLast := strconv.ParseUint(p.seen.ResourceVersion, 10, 64)
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if errLast != nil || err != nil {
		return false
	}
	return version < last || version == last && o.Address == "" && p.seen.Address != ""
}

// see takes over what Kubernetes reports, and returns what it reported before.
func (p *pod) see(s *step, o Observation) (before Observation) {
	before = p.seen
	o.Deleting = o.Deleting || before.Deleting // a deletion that has begun goes on
	if p.uid == "" {
		p.expiry.written = o.ReclaimAfter // which is another replica's if that created it
	}
	p.uid, p.seen = o.UID, o
	if p.state == creating {
		p.setState(s.at, starting, "")
	}
	p.expiry.see(o.ReclaimAfter, s.at, p.limits.TTL)
	if o.Problem.Kind.broken() && p.removal.unexplained {
		p.why, p.removal.unexplained = o.Problem.Reason, false
	}
	switch {
	case !o.Problem.Kind.open():
		p.stall = stall{}
	case p.stall.since.IsZero():
		p.stall.since = s.at
	}
	return before
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

// extend extends the expiry of a pod that is used.
func (p *pod) extend(s *step) {
	if p.expiry.extend(s.at, p.limits.TTL) {
		s.mark(p.pool)
	}
	p.writeExpiry(s)
}

// writeExpiry has the expiry of a pod written, if it is time.
func (p *pod) writeExpiry(s *step) {
	if p.uid == "" || !p.expiry.due(s.at, p.limits.TTL) {
		return
	}
	p.expiry.written, p.expiry.emitted = p.expiry.at, s.at
	s.emit(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.expiry.at})
}

// usedElsewhere reports whether another replica uses the pod.
func (p *pod) usedElsewhere(now time.Time) bool { return p.expiry.usedElsewhere(now, p.limits.TTL) }

// drain lets a pod finish its leases, and then deletes it.
func (p *pod) drain(s *step, why string, r removal) {
	if p.state.usable() {
		p.setState(s.at, draining, why)
		p.removal = r
	}
	s.mark(p.pool)
}

// spared reports whether a pod was drained since no lease used it, and another replica did.
func (p *pod) spared(now time.Time) bool {
	return p.removal.eviction == evictionTTL && now.Before(p.expiry.at) || p.removal.idle && p.usedElsewhere(now)
}

// explainable reports whether the kubelet may still report why a pod broke: while it is
// checked, and until it is gone, since a busy node takes longer than a check does.
func (p *pod) explainable() bool {
	return p.state == checking || !p.state.usable() && p.removal.unexplained
}

// standstill is what a pod that does not become ready was last seen doing.
func (p *pod) standstill() string {
	switch {
	case p.seen.Problem.Reason != "":
		return p.seen.Problem.Reason
	case p.seen.Reason != "":
		return p.seen.Reason
	case p.state == creating:
		return "Kubernetes has not confirmed it"
	case p.seen.Phase == PhaseConnecting:
		return "its containers run, but the wrapper server does not answer"
	default:
		return "its containers do not run"
	}
}

// spare keeps a pod that another replica used after it was drained.
func (p *pod) spare(s *step) {
	p.setState(s.at, starting, "")
	p.removal = removal{}
	if p.seen.Address != "" {
		p.probe(s, 0)
	}
	s.mark(p.pool)
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
	timeout, age := p.limits.ReadyTimeout, now.Sub(p.since)
	switch {
	case p.state == checking && age >= 2*checkTimeout:
		return Problem{Kind: Lost, Reason: "pod " + p.name + " was found broken, and nothing is known of its health since"}
	case p.state == creating && age >= timeout:
		return Problem{Kind: Fatal, Reason: fmt.Sprintf("pod %s was not there after %s: %s", p.name, timeout, p.standstill())}
	case p.state == starting && age >= timeout:
		return Problem{Kind: Fatal, Reason: fmt.Sprintf("pod %s was not ready after %s: %s", p.name, timeout, p.standstill())}
	default:
		return Problem{}
	}
}
