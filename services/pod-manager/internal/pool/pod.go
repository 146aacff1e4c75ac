// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"strconv"
	"time"
)

// moment is an event, identified by its number, and its time.
type moment struct {
	event uint64
	at    time.Time
}

// step collects the decisions that result from an event.
type step struct {
	moment
	actions []Action
	dirty   []*pool // pools to reconcile, in order
}

// emit adds an action.
func (s *step) emit(a Action) { s.actions = append(s.actions, a) }

// markDirty marks a pool for reconciliation before the step is complete.
func (s *step) markDirty(p *pool) {
	if !slices.Contains(s.dirty, p) {
		s.dirty = append(s.dirty, p)
	}
}

// age returns the time since t.
func (s *step) age(t time.Time) time.Duration { return s.at.Sub(t) }

// state is a pod's position in its life cycle. The package comment lists the transitions.
type state int

const (
	creating state = iota // requested, not observed yet
	starting              // not ready yet
	ready                 // accepts leases
	checking              // reported as broken, probed
	draining              // finishes its leases, then is deleted
	deleting              // deletion in progress
)

// usable reports whether a pod accepts leases now or later.
func (s state) usable() bool { return s <= checking }

// stage returns the first state of the group of states that share a start time: an observed pod has been starting
// since its creation, and a deleted pod has been leaving since it was drained.
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

// pod is a function pod.
type pod struct {
	pool      *pool
	slot      int
	id        string // label by which the pod's Service selects it
	name, uid string
	observed  Observation // last observation

	state  state
	reason string    // reason for the state, for users
	since  time.Time // start of the current stage

	adopted bool // true if this machine found the pod instead of creating it
	// countsAsAttempt is true if losing the pod counts as a failed attempt. It is false for pods that had already
	// terminated when they were first observed.
	countsAsAttempt bool
	foundRunning    bool      // true if the containers already ran when the pod was adopted
	ran             bool      // true if Kubernetes reported running containers
	created         time.Time // time of the Kubernetes API once it reports the pod
	learnedAt       moment    // first event about the pod
	becameReady     moment    // zero until the pod was ready

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
	lastGrant uint64 // number of the pod's last grant
	broken    int    // consecutive leases that reported the pod as broken
}

// removal describes the reason and the progress of a deletion.
type removal struct {
	eviction string // kind of reason, for metrics
	unsound  bool   // true if the pod does not serve
	// unexplained is true if the pod stopped answering and the kubelet did not report the cause yet.
	unexplained bool
	// silentSince is the moment at which a pod was drained that did not answer although Kubernetes reported it as
	// ready. It is zero for other pods.
	silentSince moment
	// confirmedAt is the time at which another pod answered, so the network works.
	confirmedAt time.Time
	retryAt     time.Time // next attempt to delete the pod
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
	// deletionTimeout is the delay before the deletion of an existing pod is emitted again.
	deletionTimeout = 2 * time.Minute
)

// setState moves a pod to another state, with a reason for users.
func (p *pod) setState(now time.Time, to state, why string) {
	if to.stage() != p.state.stage() {
		p.since = now
	}
	p.state = to
	p.reason = why
}

// confirmed reports whether a pod is usable and exists in Kubernetes.
func (p *pod) confirmed() bool { return p.state.usable() && p.uid != "" }

// wasReady reports whether a pod is ready, or was ready until its check began.
func (p *pod) wasReady() bool { return p.state == ready || p.state == checking }

// isIdle reports whether a pod serves, holds no lease, and no lease waits in its pool.
func (p *pod) isIdle() bool { return p.wasReady() && p.use.leases == 0 && len(p.pool.queue) == 0 }

// lastUse returns when any replica last used a pod, according to its expiry.
func (p *pod) lastUse() time.Time { return p.expiry.at.Add(-p.pool.limits.TTL) }

// phase returns the pod's current step to readiness.
func (p *pod) phase() Phase {
	if p.state == creating {
		return PhaseCreating
	}
	return p.observed.Phase
}

// version returns the version of the pod.
func (p *pod) version() version {
	return version{p.observed.TemplateVersion, p.observed.SettingsVersion}
}

// newerThan reports whether the last observation of a pod is newer than o, according to their resource versions. Of
// two observations with equal versions, the observation with an address is newer.
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

// storeObservation stores an observation, and returns the previous observation.
func (p *pod) storeObservation(s *step, o Observation) (before Observation) {
	before = p.observed
	if p.uid == "" {
		p.expiry.written = o.ReclaimAfter // written by another replica if that created the pod
		if p.adopted {
			p.expiry.foreign = o.ReclaimAfter
		}
	}
	p.uid = o.UID
	p.observed = o
	p.health.reportedReady = p.health.reportedReady || o.Ready
	if p.state == creating {
		p.setState(s.at, starting, "")
	}
	if p.state == starting && before.Phase == PhaseScheduling && o.Phase > PhaseScheduling {
		p.since = s.at // the ready timeout starts when the pod gets a node
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

// drain stops new leases. The pod is deleted after its last lease.
func (p *pod) drain(s *step, why string, r removal) {
	if p.state.usable() {
		p.setState(s.at, draining, why)
		p.removal = r
	}
	s.markDirty(p.pool)
}

// returnToStarting returns a leaving pod to starting, unless Kubernetes is deleting the pod.
func (p *pod) returnToStarting(s *step) {
	if !p.state.usable() && !p.observed.Deleting {
		p.setState(s.at, starting, "")
		p.since, p.removal = s.at, removal{}
	}
}

// backOff delays the next deletion after a refused deletion.
func (r *removal) backOff(now time.Time) {
	delay := min(minDeletionBackoff<<r.failures, deletionTimeout)
	r.failures = min(r.failures+1, 7)
	r.retryAt = now.Add(delay)
}

// minTTL is the minimum time to live, long enough to write a pod's expiry while the pod is used.
const minTTL = 5 * time.Second

// expiry is the time at which an unused pod is deleted. It is stored in an annotation of the pod, so it survives
// restarts, and all replicas read it.
type expiry struct {
	at      time.Time
	written time.Time // value of the annotation, now or soon
	foreign time.Time // last value by another replica, zero without such a value
}

// extensionInterval is the minimum time between two extensions of a pod.
func extensionInterval(ttl time.Duration) time.Duration { return ttl / 10 }

// mergeAnnotation applies the annotation's value if another replica extended it. The next scan writes a missing
// annotation.
func (e *expiry) mergeAnnotation(annotation, now time.Time, ttl time.Duration) {
	if annotation.After(e.written) {
		e.written = annotation
		e.foreign = annotation
	}
	if annotation.After(e.at) {
		e.at = annotation
	}
	if e.at.IsZero() {
		e.at = now.Add(ttl)
	}
}

// annotationLags reports whether the annotation is an interval behind its next value.
func (e *expiry) annotationLags(now time.Time, ttl time.Duration) bool {
	return now.Add(ttl).Sub(e.written) >= extensionInterval(ttl)
}

// extendExpiry moves the expiry of a used pod to a time to live from now. It never moves the expiry back.
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
