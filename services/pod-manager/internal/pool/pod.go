// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"strconv"
	"time"
)

// moment is the number and the time of an event.
type moment struct {
	event uint64
	at    time.Time
}

// step collects the actions that result from an event, and the pools that must be reconciled.
type step struct {
	moment
	actions []Action
	dirty   []*pool // pools to reconcile, in order
}

func (s *step) emit(a Action) { s.actions = append(s.actions, a) }

// markDirty marks a pool for reconciliation before the step is complete.
func (s *step) markDirty(p *pool) {
	if !slices.Contains(s.dirty, p) {
		s.dirty = append(s.dirty, p)
	}
}

func (s *step) age(t time.Time) time.Duration { return s.at.Sub(t) }

// state is the state of a pod in its life cycle. The package comment lists the transitions.
type state int

const (
	creating state = iota // requested, not observed yet
	starting              // not ready yet
	ready                 // accepts leases
	checking              // possibly broken, waits for the result of a probe
	draining              // gets no new leases, and is deleted after its last lease
	deleting              // deletion in progress
)

// usable reports whether a pod in this state accepts leases now or later.
func (s state) usable() bool { return s <= checking }

// stage groups states that share a start time, and returns the first state of the group. Creating and starting form a
// group, because the ready timeout begins with the creation. Draining and deleting form a group, because a pod is
// leaving since it was drained.
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

type pod struct {
	pool      *pool
	slot      int
	id        string // value of the label by which the pod's Service selects the pod
	name, uid string
	observed  Observation // last observation

	state  state
	reason string    // reason for the state, for users
	since  time.Time // start of the current stage

	adopted bool // true if another process created the pod
	// countsAsAttempt is true if the loss of the pod counts as a failed attempt. It is false for pods that were
	// already leaving when they were first observed.
	countsAsAttempt bool
	foundRunning    bool      // true if the containers already ran when the pod was adopted
	ran             bool      // true if Kubernetes reported that the containers run
	created         time.Time // creation time that the Kubernetes API reports
	learnedAt       moment    // first event about the pod
	becameReady     moment    // zero until the pod was ready

	expiry  expiry
	use     use
	health  health
	stall   stall
	removal removal
}

// use contains numbers about a pod's leases.
type use struct {
	leases    int // current leases
	total     int64
	lastGrant uint64 // number of the pod's last grant
	broken    int    // consecutive leases that reported the pod as broken
}

// removal describes the reason and the progress of a pod's deletion.
type removal struct {
	eviction string // kind of reason, for metrics
	unsound  bool   // true if the pod is broken
	// unexplained is true if the pod stopped answering and the kubelet has not reported the cause yet.
	unexplained bool
	// silentSince is the moment since which the pod is silent, see connectivity. It is zero if the pod was drained
	// for another reason.
	silentSince moment
	// confirmedAt is the time when the answer of another pod showed that the network works. It is zero before.
	confirmedAt time.Time
	retryAt     time.Time // next attempt to delete the pod
	failures    int       // number of refused deletions
}

// Kinds of reasons for deletions of pods, for metrics.
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
	// deletionTimeout is the time after which a deletion is emitted again if the pod still exists.
	deletionTimeout = 2 * time.Minute
)

// setState moves a pod to another state. why is the reason that users see.
func (p *pod) setState(now time.Time, to state, why string) {
	if to.stage() != p.state.stage() {
		p.since = now
	}
	p.state = to
	p.reason = why
}

// confirmed reports whether a pod is usable and exists in Kubernetes.
func (p *pod) confirmed() bool { return p.state.usable() && p.uid != "" }

// wasReady reports whether a pod is ready, or is being checked after it was ready.
func (p *pod) wasReady() bool { return p.state == ready || p.state == checking }

// isIdle reports whether no lease uses a serving pod, and no lease waits for the pod's pool.
func (p *pod) isIdle() bool { return p.wasReady() && p.use.leases == 0 && len(p.pool.queue) == 0 }

// lastUse returns the time when any replica last used a pod. It is computed from the pod's expiry.
func (p *pod) lastUse() time.Time { return p.expiry.at.Add(-p.pool.limits.TTL) }

// phase returns the pod's progress towards readiness.
func (p *pod) phase() Phase {
	if p.state == creating {
		return PhaseCreating
	}
	return p.observed.Phase
}

// version returns the version of the template and settings from which the pod was built.
func (p *pod) version() version {
	return version{p.observed.TemplateVersion, p.observed.SettingsVersion}
}

// newerThan reports whether the last observation of a pod is newer than o, according to their resource versions. If
// the versions are equal, an observation with an address counts as newer.
func (p *pod) newerThan(o Observation) bool {
	if p.uid != o.UID {
		return false
	}
	last, errLast := strconv.ParseUint(p.observed.ResourceVersion, 10, 64)
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if errLast != nil || err != nil {
		return false
	}
	return version < last || (version == last && o.Address == "" && p.observed.Address != "")
}

// storeObservation stores an observation, and returns the previous observation.
func (p *pod) storeObservation(s *step, o Observation) (before Observation) {
	before = p.observed
	if p.uid == "" {
		p.expiry.written = o.ReclaimAfter // the pod's creator has written it
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
		p.reason = o.Problem.Reason
		p.removal.unexplained = false
	}
	switch {
	case !o.Problem.Kind.mayPass():
		p.stall = stall{}
	case p.stall.since.IsZero():
		p.stall.since = s.at
	}
	return before
}

// drain moves a pod to the state draining: it gets no new leases, and is deleted after its last lease. why is the
// reason for users.
func (p *pod) drain(s *step, why string, r removal) {
	if p.state.usable() {
		p.setState(s.at, draining, why)
		p.removal = r
	}
	s.markDirty(p.pool)
}

// returnToStarting moves a draining or deleting pod back to the state starting, unless Kubernetes is deleting the
// pod.
func (p *pod) returnToStarting(s *step) {
	if !p.state.usable() && !p.observed.Deleting {
		p.setState(s.at, starting, "")
		p.since = s.at
		p.removal = removal{}
	}
}

// backOff delays the next deletion after a refused deletion.
func (r *removal) backOff(now time.Time) {
	delay := min(minDeletionBackoff<<r.failures, deletionTimeout)
	r.failures = min(r.failures+1, 7)
	r.retryAt = now.Add(delay)
}

// minTTL is the minimum time to live. A shorter time would pass before the expiry of a used pod is extended.
const minTTL = 5 * time.Second

// expiry is the time when an unused pod is deleted. It is stored in an annotation of the pod, so that it survives
// restarts of this replica, and other replicas can read it.
type expiry struct {
	at      time.Time
	written time.Time // value of the annotation, including a requested change
	foreign time.Time // last value that another replica wrote, else zero
}

// extensionInterval returns the minimum time by which an extension must change a pod's expiry. It limits the writes
// of annotations.
func extensionInterval(ttl time.Duration) time.Duration { return ttl / 10 }

// mergeAnnotation applies an annotation's value if another replica extended the expiry. A missing annotation is zero.
// The next scan writes it.
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

// annotationLags reports whether an extension now would change the annotation by at least extensionInterval.
func (e *expiry) annotationLags(now time.Time, ttl time.Duration) bool {
	return now.Add(ttl).Sub(e.written) >= extensionInterval(ttl)
}

// extendExpiry sets the expiry of a used pod to now plus the time to live. It never moves the expiry to an earlier
// time.
func (p *pod) extendExpiry(s *step) {
	if end := s.at.Add(p.pool.limits.TTL); end.After(p.expiry.at) {
		p.expiry.at = end
		s.markDirty(p.pool)
	}
	p.writeExpiry(s)
}

// writeExpiry emits the write of a pod's expiry, if this changes the annotation by at least extensionInterval.
func (p *pod) writeExpiry(s *step) {
	if p.uid == "" || p.expiry.at.Sub(p.expiry.written) < extensionInterval(p.pool.limits.TTL) {
		return
	}
	p.expiry.written = p.expiry.at
	s.emit(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.expiry.at})
}
