// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"strconv"
	"time"
)

// moment is an event, by its number, and its time.
type moment struct {
	event uint64
	at    time.Time
}

// step collects the decisions that one event leads to.
type step struct {
	moment
	actions []Action
	dirty   []*pool // pools to reconcile, in this order
}

// emit adds an action.
func (s *step) emit(a Action) { s.actions = append(s.actions, a) }

// markDirty marks a pool as dirty: it is reconciled before the step ends.
func (s *step) markDirty(p *pool) {
	if !slices.Contains(s.dirty, p) {
		s.dirty = append(s.dirty, p)
	}
}

// age returns how long ago a time was.
func (s *step) age(t time.Time) time.Duration { return s.at.Sub(t) }

// state is a pod's position in its life cycle. The package comment lists the transitions.
type state int

const (
	creating state = iota // requested, not observed yet
	starting              // on its way to readiness
	ready                 // takes leases
	checking              // reported as broken, its health is being probed
	draining              // takes no leases, and is deleted after its last one
	deleting              // its deletion is in progress
)

// usable reports whether a pod takes leases or will.
func (s state) usable() bool { return s <= checking }

// stage returns the first state of the group that shares one start time: an observed pod has been starting since it
// was created, and a pod that is deleted has been leaving since it was drained.
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
	id        string // label by which the pod's Service selects it
	name, uid string
	observed  Observation // the last one

	state  state
	reason string    // reason for the state, for users
	since  time.Time // start of the current stage

	adopted bool // true if this machine found the pod instead of creating it
	// countsAsAttempt is true if losing the pod counts as a failed attempt to have one. It is false for pods that had
	// already terminated when they were first observed.
	countsAsAttempt bool
	foundRunning    bool      // its containers already ran when the pod was adopted
	ran             bool      // Kubernetes reported that its containers run
	created         time.Time // by Kubernetes' clock once the pod is known there
	learnedAt       moment    // when this machine learned of the pod
	becameReady     moment    // zero until the pod was ready once

	expiry  expiry
	use     use
	health  health
	stall   stall
	removal removal
}

// use counts a pod's leases.
type use struct {
	leases    int // current leases
	total     int64
	lastGrant uint64 // number of the last grant on this pod
	broken    int    // consecutive leases that reported the pod as broken
}

// removal describes why and how a pod is deleted.
type removal struct {
	eviction string // kind of reason, for metrics
	unsound  bool   // true if the pod does not serve
	// unexplained is true if the pod stopped answering and the kubelet has not reported why.
	unexplained bool
	// silentSince is when the pod was drained for not answering although Kubernetes reported it as ready. It is zero
	// otherwise.
	silentSince moment
	// confirmedAt is when another pod was found to answer, which rules out a network failure.
	confirmedAt time.Time
	retryAt     time.Time // when to emit the deletion again
	failures    int       // refused deletions
}

// Kinds of evictions, for metrics.
const (
	evictionTTL      = "ttl"
	evictionTemplate = "template"
	evictionSurplus  = "surplus"
	evictionCapacity = "capacity"
	evictionFailed   = "failed"
)

const (
	// minDeletionBackoff is the delay after a refused deletion. It doubles up to deletionTimeout.
	minDeletionBackoff = time.Second
	// deletionTimeout is the delay before the deletion of a pod that still exists is emitted again.
	deletionTimeout = 2 * time.Minute
)

// setState moves a pod to another state, for a reason that users read.
func (p *pod) setState(now time.Time, to state, why string) {
	if to.stage() != p.state.stage() {
		p.since = now
	}
	p.state = to
	p.reason = why
}

// confirmed reports whether Kubernetes has confirmed a usable pod.
func (p *pod) confirmed() bool { return p.state.usable() && p.uid != "" }

// wasReady reports whether a pod is ready, or was until its check began.
func (p *pod) wasReady() bool { return p.state == ready || p.state == checking }

// isIdle reports whether a pod serves, and no lease uses it or is about to.
func (p *pod) isIdle() bool { return p.wasReady() && p.use.leases == 0 && len(p.pool.queue) == 0 }

// lastUse is when a pod was last used by any replica, as far as its expiry shows.
func (p *pod) lastUse() time.Time { return p.expiry.at.Add(-p.pool.limits.TTL) }

// phase is the step that a pod is at on its way to readiness.
func (p *pod) phase() Phase {
	if p.state == creating {
		return PhaseCreating
	}
	return p.observed.Phase
}

// version is what the pod was made from.
func (p *pod) version() version {
	return version{p.observed.TemplateVersion, p.observed.SettingsVersion}
}

// newerThan reports whether the last observation of a pod is newer than o, as far as resource versions show. An
// address that is missing in the same version was only not known yet.
func (p *pod) newerThan(o Observation) bool {
	if p.uid != o.UID {
		return false
	}
	last, errLast := strconv.ParseUint(p.observed.ResourceVersion, 10, 64)
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if errLast != nil || err != nil {
		return false
	}
	return version < last || version == last && o.Address == "" && p.observed.Address != ""
}

// storeObservation stores an observation, and returns the previous one.
func (p *pod) storeObservation(s *step, o Observation) (before Observation) {
	before = p.observed
	if p.uid == "" {
		p.expiry.written = o.ReclaimAfter // another replica's if that one created the pod
	}
	p.uid = o.UID
	p.observed = o
	p.health.reportedReady = p.health.reportedReady || o.Ready
	if p.state == creating {
		p.setState(s.at, starting, "")
	}
	if p.state == starting && before.Phase == PhaseScheduling && o.Phase > PhaseScheduling {
		p.since = s.at // the time to become ready begins when the pod has a node
	}
	p.expiry.mergeAnnotation(o.ReclaimAfter, s.at, p.pool.limits.TTL)
	if o.Problem.Kind.broken() && p.removal.unexplained {
		p.reason, p.removal.unexplained = o.Problem.Reason, false
	}
	switch {
	case !o.Problem.Kind.mayPass():
		p.stall = stall{}
	case p.stall.since.IsZero():
		p.stall.since = s.at
	}
	return before
}

// drain stops new leases. The pod is deleted after the last one.
func (p *pod) drain(s *step, why string, r removal) {
	if p.state.usable() {
		p.setState(s.at, draining, why)
		p.removal = r
	}
	s.markDirty(p.pool)
}

// returnToStarting returns a pod that was leaving to starting, unless it is deleted.
func (p *pod) returnToStarting(s *step) {
	if !p.state.usable() && !p.observed.Deleting {
		p.setState(s.at, starting, "")
		p.since, p.removal = s.at, removal{}
	}
}

// backOff delays the next deletion after a refused one.
func (r *removal) backOff(now time.Time) {
	delay := min(minDeletionBackoff<<r.failures, deletionTimeout)
	r.failures = min(r.failures+1, 7)
	r.retryAt = now.Add(delay)
}

// minTTL is the shortest time to live, so that writing a pod's expiry keeps up with the pod's use.
const minTTL = 5 * time.Second

// expiry is when an unused pod is deleted. Each pod has an annotation with its expiry, so that it survives restarts
// and is known to all replicas.
type expiry struct {
	at      time.Time
	written time.Time // value of the annotation, now or soon
}

// extensionInterval is the minimum time between two extensions of a pod.
func extensionInterval(ttl time.Duration) time.Duration { return ttl / 10 }

// mergeAnnotation takes over the annotation's value if another replica extended it. A pod without an annotation gets one with
// the next scan.
func (e *expiry) mergeAnnotation(annotation, now time.Time, ttl time.Duration) {
	if annotation.After(e.written) {
		e.written = annotation
	}
	if annotation.After(e.at) {
		e.at = annotation
	}
	if e.at.IsZero() {
		e.at = now.Add(ttl)
	}
}

// annotationLags reports whether the annotation is an interval behind a value that would be written now.
func (e *expiry) annotationLags(now time.Time, ttl time.Duration) bool {
	return now.Add(ttl).Sub(e.written) >= extensionInterval(ttl)
}

// extendExpiry moves the expiry of a pod that is used to a time to live from now. It never brings the expiry forward.
func (p *pod) extendExpiry(s *step) {
	if end := s.at.Add(p.pool.limits.TTL); end.After(p.expiry.at) {
		p.expiry.at = end
		s.markDirty(p.pool)
	}
	p.writeExpiry(s)
}

// writeExpiry emits the extension of a pod's expiry, if that changes the annotation by an interval.
func (p *pod) writeExpiry(s *step) {
	if p.uid == "" || p.expiry.at.Sub(p.expiry.written) < extensionInterval(p.pool.limits.TTL) {
		return
	}
	p.expiry.written = p.expiry.at
	s.emit(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.expiry.at})
}
