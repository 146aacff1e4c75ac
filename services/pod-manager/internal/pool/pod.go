// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"strconv"
	"time"
)

// moment contains the sequence number and the time of an event.
type moment struct {
	event uint64
	at    time.Time
}

// step collects the actions that result from an event, and the pools that must be reconciled after it.
type step struct {
	moment
	actions []Action
	dirty   []*pool // pools to reconcile, in order
}

func (s *step) emit(a Action) { s.actions = append(s.actions, a) }

// markDirty causes a pool to be reconciled before [Machine.Handle] returns.
func (s *step) markDirty(p *pool) {
	if !slices.Contains(s.dirty, p) {
		s.dirty = append(s.dirty, p)
	}
}

func (s *step) age(t time.Time) time.Duration { return s.at.Sub(t) }

// state is a step in the life cycle of a pod. The package comment lists the transitions.
type state int

const (
	creating state = iota // requested, but not observed in Kubernetes yet
	starting              // not ready yet
	ready                 // accepts leases
	checking              // possibly broken, waits for the result of a probe
	draining              // accepts no new leases, is deleted after its last lease
	deleting              // deletion in progress
)

// usable reports whether a pod in this state accepts leases now or may accept them later.
func (s state) usable() bool { return s <= checking }

type pod struct {
	pool      *pool
	slot      int
	name, uid string
	observed  Observation // last observation

	state  state
	reason string // explains the state to users
	// since is the start time of the current state. The states creating and starting count as one state. It starts again
	// when the pod gets a node. The states draining and deleting also count as one state.
	since time.Time

	adopted bool // true if another process created the pod
	// countsAsAttempt is true if countLoss may count the loss of the pod. It is false for a pod that was already being
	// deleted when this replica first observed it.
	countsAsAttempt bool
	foundRunning    bool      // true if the containers already ran when the pod was adopted
	ran             bool      // true if Kubernetes reported that the containers run
	learnedAt       moment    // first event about the pod
	becameReady     moment    // zero until the pod was ready
	stalledSince    time.Time // start of a possibly temporary problem, such as a failing image pull, or zero

	expiry  expiry
	use     use
	health  health
	removal removal
}

// use counts the leases on a pod.
type use struct {
	leases    int // current leases
	total     int64
	lastGrant uint64 // sequence number of the last grant on this pod
	broken    int    // consecutive leases that reported the pod as broken
}

// removal describes the reason and the progress of a pod's deletion.
type removal struct {
	eviction string // kind of reason, for metrics
	version  string // resource version, see Delete.Version
	unsound  bool   // true if the pod is broken
	// unexplained is true if the pod stopped answering, and the kubelet has not reported the cause yet.
	unexplained bool
	// silentSince is the moment when the pod stopped answering probes. It is zero if the pod is draining for another
	// reason.
	silentSince moment
	// confirmedAt is the time when another pod first answered a probe, or zero before. The answer proves that the network
	// works, and therefore that the silent pod is broken.
	confirmedAt time.Time
	retryAt     time.Time // next attempt to delete the pod
	backoff     time.Duration
}

// Kinds of reasons for which pods are deleted, as label values of a metric.
const (
	evictionTTL      = "ttl"
	evictionTemplate = "template"
	evictionSurplus  = "surplus"
	evictionCapacity = "capacity"
	evictionFailed   = "failed"
)

const (
	// minDeletionBackoff is the delay before the first retry of a failed deletion. It doubles up to deletionTimeout.
	minDeletionBackoff = time.Second
	// deletionTimeout is the time after which the deletion of a pod is requested again if the pod still exists.
	deletionTimeout = 2 * time.Minute
)

// setState moves a pod to another state. reason is shown to users.
func (p *pod) setState(now time.Time, to state, reason string) {
	continues := to == p.state || (p.state == creating && to == starting) || (!p.state.usable() && !to.usable())
	if !continues {
		p.since = now
	}
	p.state = to
	p.reason = reason
}

// isIdle reports whether a pod serves, no lease uses it, and no lease waits for its pool.
func (p *pod) isIdle() bool {
	return (p.state == ready || p.state == checking) && p.use.leases == 0 && len(p.pool.queue) == 0
}

// lastUse returns the time when any replica last used a pod, computed as the pod's expiry minus the time to live.
func (p *pod) lastUse() time.Time { return p.expiry.at.Add(-p.pool.limits.TTL) }

// phase returns the pod's progress towards readiness, such as the pull of its image.
func (p *pod) phase() Phase {
	if p.state == creating {
		return PhaseCreating
	}
	return p.observed.Phase
}

// newerThan reports whether the pod's stored observation is newer than o, according to the resource versions. If the
// versions are equal, an observation with an address is newer than an observation without an address.
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

// storeObservation stores a new observation of a pod, and returns the previous observation.
func (p *pod) storeObservation(s *step, o Observation) (before Observation) {
	before = p.observed
	if p.uid == "" && !p.adopted {
		p.expiry.written = o.ReclaimAfter // another replica may have created the pod first
	}
	p.uid = o.UID
	p.observed = o
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
		p.stalledSince = time.Time{}
	case p.stalledSince.IsZero():
		p.stalledSince = s.at
	}
	return before
}

// drain stops new leases on a pod, so that the pod is deleted when its last lease ends. reason is shown to users.
func (p *pod) drain(s *step, reason string, r removal) {
	if p.state.usable() {
		p.setState(s.at, draining, reason)
		p.removal = r
	}
	s.markDirty(p.pool)
}

// isDeletedHere reports whether this replica must delete the draining pod. A replica deletes the pods of its own
// functions. It deletes pods of other replicas' functions only if it drained them to make room for other pods.
func (p *pod) isDeletedHere() bool {
	return p.pool.owner.Mine || p.removal.eviction == evictionCapacity
}

// returnToStarting cancels the removal of a pod and moves it to the state starting. It does nothing if Kubernetes
// is already deleting the pod.
func (p *pod) returnToStarting(s *step) {
	if !p.state.usable() && !p.observed.Deleting {
		p.setState(s.at, starting, "")
		p.removal = removal{}
	}
}

// changedSinceDrain reports whether a pod changed in Kubernetes after this replica began to drain it. For example,
// another replica may have extended the pod's expiry, because it uses the pod.
func (p *pod) changedSinceDrain() bool {
	return p.state == draining && p.removal.version != "" && p.removal.version != p.observed.ResourceVersion
}

// minTTL is the minimum time to live of a pod. With less, a pod in use could expire before its expiry is extended.
const minTTL = 5 * time.Second

// expiry is the time when an unused pod is deleted. An annotation of the pod stores it, so that it survives restarts of
// this replica, and other replicas can read it.
type expiry struct {
	at      time.Time
	written time.Time // value of the annotation, even if its write is still pending
	foreign time.Time // last value that another replica wrote, or zero
}

// extensionInterval returns the minimum interval between two extensions of a pod's expiry in the Kubernetes API.
func extensionInterval(ttl time.Duration) time.Duration { return ttl / 10 }

// mergeAnnotation adopts a later expiry from the pod's annotation, because another replica may have extended it. If the
// pod lacks the annotation, the argument annotation is zero. The next scan then writes the annotation.
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

// extendExpiry moves the expiry of a pod in use to now plus the time to live. It never shortens the expiry.
func (p *pod) extendExpiry(s *step) {
	if end := s.at.Add(p.pool.limits.TTL); end.After(p.expiry.at) {
		p.expiry.at = end
	}
	p.writeExpiry(s)
}

// writeExpiry emits [Extend] to write a pod's new expiry to its annotation. It skips small changes, see
// extensionInterval.
func (p *pod) writeExpiry(s *step) {
	if p.uid == "" || p.expiry.at.Sub(p.expiry.written) < extensionInterval(p.pool.limits.TTL) {
		return
	}
	p.expiry.written = p.expiry.at
	s.emit(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.expiry.at})
}
