// SPDX-License-Identifier: Apache-2.0

package pool

import (
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

// stage returns the first state of the group that shares one time, since: a pod that is seen has been
// starting since it was created, and one that is deleted since it was drained.
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
	slot      int
	id        string // by which its Service finds it
	name, uid string
	seen      Observation

	state state
	why   string    // it is in this state, for users
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
	leases int // leases that it holds
	total  int64
	turn   uint64 // when it was chosen last, in grants
	broken int    // leases in a row that found it broken
}

// health is what a pod answered about its health.
type health struct {
	asked    string // the address of an open probe; empty if there is none
	question uint64 // the last one
	answered uint64 // the event by which it last answered that it is healthy
	// suspected reports whether the pod is checked before any lease has ended as broken.
	suspected bool
	// doubted is when a caller left a pod without an answer that takes leases, and has not answered
	// since; zero if none did.
	doubted time.Time
	// reported reports whether Kubernetes reported the pod as ready.
	reported bool
}

// stall is a problem that the pod may still overcome.
type stall struct {
	since   time.Time // zero if there is none
	tooLong bool      // it has lasted for too long
}

// removal is why a pod is deleted.
type removal struct {
	eviction string // the kind of reason, for metrics
	// undoable reports whether another replica's use undoes the removal: the pod was chosen
	// because no lease used it.
	undoable bool
	// unsound reports whether the pod does not serve: it is deleted in any version.
	unsound bool
	// unexplained reports whether it stopped answering, and the kubelet has not said why.
	unexplained bool
	// silent is when it was drained for its silence, although Kubernetes reported it as ready;
	// zero if it was not.
	silent moment
	// confirmed is when it was found that another pod answers, and it is not the network; zero if it was not.
	confirmed time.Time
	retryAt   time.Time // when to emit its deletion again
}

// Kinds of evictions, for metrics.
const (
	evictionTTL      = "ttl" // another replica's use of the pod undoes it
	evictionTemplate = "template"
	evictionSurplus  = "surplus"
	evictionCapacity = "room"
	evictionFailed   = "failed"
)

const (
	// deletionRetry is when to decide again about a pod that could not be deleted.
	deletionRetry = time.Second
	// deletionTimeout is when to emit the deletion of a pod again that is still there.
	deletionTimeout = 2 * time.Minute
)

// setState moves a pod to another state, for a reason that users read.
func (p *pod) setState(now time.Time, to state, why string) {
	if to.stage() != p.state.stage() {
		p.since = now
	}
	p.state, p.why, p.health.doubted = to, why, time.Time{}
	p.pool.all.follow(p)
}

// confirmed reports whether Kubernetes has confirmed a usable pod.
func (p *pod) confirmed() bool { return p.state.usable() && p.uid != "" }

// wasReady reports whether a pod is ready, or was until its check began.
func (p *pod) wasReady() bool { return p.state == ready || p.state == checking }

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
// as versions show: those of Kubernetes are numbers that grow. An address that is missing
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
	p.health.reported = p.health.reported || o.Ready
	if p.state == creating {
		p.setState(s.at, starting, "")
	}
	if p.state == starting && before.Phase == PhaseScheduling && o.Phase > PhaseScheduling {
		p.since = s.at // it has as long to become ready as a pod that had a node at once
	}
	p.expiry.see(o.ReclaimAfter, s.at, p.pool.limits.TTL)
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

// drain stops new leases; release deletes the pod after the last one.
func (p *pod) drain(s *step, why string, r removal) {
	if p.state.usable() {
		p.setState(s.at, draining, why)
		p.removal = r
	}
	s.mark(p.pool)
}

// replace drains an outdated pod. One that was chosen because no lease uses it stays while another replica does.
func (p *pod) replace(s *step, unused bool) {
	why := "it was made from another template or with other settings"
	p.drain(s, why, removal{eviction: evictionTemplate, undoable: unused})
}

// mayUndrain reports whether a pod that was drained as unused is in use by another replica.
func (p *pod) mayUndrain(now time.Time) bool {
	return p.removal.eviction == evictionTTL && now.Before(p.expiry.at) || p.removal.undoable && p.usedElsewhere(now)
}

// undrain keeps a pod that another replica used after it was drained.
func (p *pod) undrain(s *step) {
	p.setState(s.at, starting, "")
	p.removal = removal{}
	if p.seen.Address != "" {
		p.probe(s, 0)
	}
	s.mark(p.pool)
}
