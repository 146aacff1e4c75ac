// SPDX-License-Identifier: Apache-2.0

// Package pool decides which function pods exist and which callers may use them.
//
// The package is a state machine: its inputs are events, and its outputs are actions. It performs no I/O, reads no
// clock, starts no goroutine and uses no Kubernetes client, so that a test can simulate a day in a second. The caller
// of a [Machine] uses a single goroutine, carries out the actions in order, and passes their results as events.
//
// Files, in reading order. A file uses only files before it, with few exceptions (see arrows_test.go):
//   - config, event and action define the inputs and outputs;
//   - pod contains the life cycle and the expiry of a pod, and health its probes and failures;
//   - pool contains the pods of a function, and their versions;
//   - queue contains the waiting leases;
//   - eviction limits the number of pods of all pools together;
//   - ownership and connectivity restrict the actions of this replica if there are several replicas;
//   - machine contains the whole state and handles the events, and status returns the state for users and metrics.
//
// A pod passes through these states:
//
//	from             to        when
//	-                creating  the pool needs a further pod
//	-                starting  this replica adopts a pod that another process created
//	creating         starting  Kubernetes reports the pod
//	creating         gone      the pod could not be created, or is not observed in time
//	starting         ready     the pod answers a probe that it is healthy
//	ready            checking  a lease reported the pod as broken, its caller avoids the pod, a caller gave up waiting
//	                           for an answer of the pod, or Kubernetes no longer reports the pod as ready
//	checking         ready     the pod answers a probe that it is healthy
//	ready, checking  starting  the pod's containers stopped, and may start again
//	usable           draining  the pod failed, expired, is outdated or surplus, or is evicted
//	usable           deleting  another client deletes the pod
//	draining         deleting  no lease uses the pod any longer
//	deleting         draining  the deletion failed
//	draining         starting  the pod was unused, and another replica extended its expiry before its deletion
//	draining         starting  a lease waits, and the deletion of the expired pod failed
//	any              gone      the pod no longer exists in Kubernetes
//
// The states creating, starting, ready and checking are called usable: their pods accept leases now or later.
package pool

import (
	"cmp"
	"slices"
	"time"
)

// pool contains the pods of a function and the queue of leases that wait for a pod.
type pool struct {
	function Function
	limits   Limits
	owner    Owner
	// version identifies the current pod template and settings. since is the moment when this version arrived.
	version version
	since   moment
	// minPods is the configured minimum number of pods, which exist even if no lease needs them.
	minPods int
	pods    []*pod   // sorted by slot
	queue   []*lease // oldest lease first
	failure failure
	// predecessors maps each slot, the number of a pod within the pool, to the UID of the last deleted pod in this slot.
	// The name of the next pod in the slot depends on this UID.
	predecessors map[int]string
	emptySince   time.Time // time when the last pod was removed
	// reportPositions is true if the next report must tell waiting callers their new positions in the queue.
	reportPositions bool

	leasesTotal, coldStartsTotal int64
}

func (p *pool) countUsable() int {
	n := 0
	for _, pod := range p.pods {
		if pod.state.usable() {
			n++
		}
	}
	return n
}

// countDemand returns the number of leases that wait for the pool or run on its usable pods.
func (p *pool) countDemand() int {
	demand := len(p.queue)
	for _, pod := range p.pods {
		if pod.state.usable() {
			demand += pod.use.leases
		}
	}
	return demand
}

// podsFor returns the number of pods that the given number of leases requires, at most MaxPods.
func (p *pool) podsFor(leases int) int {
	return min((leases+p.limits.MaxWaitlistLength-1)/p.limits.MaxWaitlistLength, p.limits.MaxPods)
}

// minimum returns the number of pods that this replica must keep, or 0 if another replica owns the pool.
func (p *pool) minimum() int {
	if !p.owner.Mine {
		return 0
	}
	return min(p.minPods, p.limits.MaxPods)
}

func (p *pool) needsPod(now time.Time) (reason Reason, missing bool) {
	switch usable := p.countUsable(); {
	case usable < p.podsFor(p.countDemand()):
		return ForLeases, true
	case usable < p.minimum():
		return ForMinimum, true
	default:
		return ForVersion, p.needsSurge(now)
	}
}

// isNeeded reports whether leases use a pod or wait for its pool. A needed pod does not expire.
func (p *pool) isNeeded(pod *pod) bool {
	return pod.use.leases > 0 || (pod.state.usable() && len(p.queue) > 0)
}

// inMinimum reports whether the pool needs a pod for its minimum number of pods. Such a pod must not expire. Once a pod
// of the current version is ready, outdated pods no longer count towards the minimum.
func (p *pool) inMinimum(now time.Time, kept *pod) bool {
	serving, _, _ := p.countVersions(now)
	n := 0
	for _, pod := range p.pods {
		if n == p.minimum() {
			return false
		}
		if !pod.state.usable() || (serving > 0 && p.isOutdated(now, pod)) {
			continue
		}
		if n++; pod == kept {
			return true
		}
	}
	return false
}

func (p *pool) configure(s *step, c Config) {
	former := p.version
	p.limits = c.limitsOf(p.function)
	p.version = version{c.Template, p.limits.Settings}
	if former.template != "" && former != p.version {
		p.since = s.moment
	}
	if former.template != p.version.template {
		p.failure = failure{} // the former template may have caused the failures
	}
	s.markDirty(p)
}

// followObservation updates the state of a pod after an observation. The argument before is the previous observation.
func (p *pool) followObservation(s *step, pod *pod, before Observation) {
	o := pod.observed
	switch {
	case o.Deleting && pod.state.usable():
		pod.setState(s.at, deleting, "another client deleted it")
		p.countDeletion(s, pod)
	case o.Deleting:
		pod.setState(s.at, deleting, pod.reason)
	case pod.changedSinceDrain() && s.at.Before(pod.expiry.at):
		pod.returnToStarting(s) // another replica may use the pod
		p.followObservation(s, pod, o)
	case pod.changedSinceDrain():
		pod.removal.version = o.ResourceVersion
	case !pod.state.usable():
		pod.removal.unsound = pod.removal.unsound || o.Problem.Kind.broken()
	case o.Problem.Kind.broken():
		p.drainFailed(s, pod, o.Problem)
	case pod.containersStopped(before):
		pod.restart(s.at)
	case pod.state == starting && o.Address != "" && p.isManaged():
		pod.probe(s, 0) // probe early, because Kubernetes reports running containers late
	case p.owner.Mine && pod.lostReadiness(before):
		pod.check(s, true, "Kubernetes no longer reports it as ready, and its health is being probed")
	default:
		pod.trustReadiness(s)
	}
	pod.ran = pod.ran || o.containersRun()
	pod.countsAsAttempt = pod.countsAsAttempt || pod.state.usable()
}

// extendNeeded extends the expiry of pods that are in use or needed for the minimum number of pods. It runs with each
// tick, because the time to live may be shorter than the scan interval.
func (p *pool) extendNeeded(s *step) {
	for _, pod := range p.pods {
		if pod.state != deleting && (p.isNeeded(pod) || p.inMinimum(s.at, pod)) {
			pod.extendExpiry(s)
		}
	}
}

// collectExpired drains expired pods that are no longer needed. For the other pods, it writes the expiry annotation if
// the annotation is missing or old.
func (p *pool) collectExpired(s *step) {
	for _, pod := range p.pods {
		expired := pod.state.usable() && pod.uid != "" && !s.at.Before(pod.expiry.at)
		if expired && !p.isNeeded(pod) && !p.inMinimum(s.at, pod) {
			r := removal{eviction: evictionTTL, version: pod.observed.ResourceVersion}
			pod.drain(s, "it was not used for its time to live", r)
		}
		if pod.state.usable() {
			pod.writeExpiry(s)
		}
	}
}

// reuseExpired cancels the removal of expired pods that waiting leases need, unless Kubernetes already deletes them.
func (p *pool) reuseExpired(s *step) {
	for _, pod := range p.pods {
		expired := pod.state == draining && pod.removal.eviction == evictionTTL
		if expired && len(p.queue) > 0 && p.countUsable() < p.podsFor(p.countDemand()) {
			pod.returnToStarting(s)
			p.followObservation(s, pod, pod.observed)
		}
	}
}

// trimSurplus drains pods above MaxPods. Such pods exist after the limit was lowered or two replicas created pods
// concurrently. Idle pods are drained first, then outdated pods, then pods with high slots. A pod in use is drained
// only if enough other pods are ready. Leases on drained pods continue.
func (p *pool) trimSurplus(s *step) {
	limit := p.limits.MaxPods
	if slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state.usable() && p.otherVersion(pod) }) {
		limit++ // a further pod may replace an outdated pod
	}
	var candidates []*pod
	for _, outdated := range []bool{true, false} {
		for _, pod := range slices.Backward(p.pods) {
			if pod.state == ready && p.isOutdated(s.at, pod) == outdated {
				candidates = append(candidates, pod)
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b *pod) int {
		return cmp.Compare(min(a.use.leases, 1), min(b.use.leases, 1))
	})
	usable, serving := p.countUsable(), len(candidates)
	for _, pod := range candidates {
		if serving > limit || (usable > limit && pod.use.leases == 0) {
			pod.drain(s, "the function has more pods than it may have", removal{eviction: evictionSurplus})
			usable--
			serving--
		}
	}
}

// versionGrace is the time during which a new pod of another replica does not count as outdated. That replica may not
// have received the current template and settings yet. Without this time, replicas would drain each other's new pods,
// and no caller would get a pod.
const versionGrace = time.Minute

// otherVersion reports whether a pod was built from a template or settings that differ from the pool's current version.
// It returns false while the current template is unknown.
func (p *pool) otherVersion(pod *pod) bool {
	made := version{pod.observed.TemplateVersion, pod.observed.SettingsVersion}
	return pod.uid != "" && p.version.template != "" && made != p.version
}

// isOutdated reports whether a pod must be replaced, because its template or settings changed. If replicas coordinate,
// the function's owner compares the pod with its own version. If replicas do not coordinate, each replica keeps pods
// that were created after it received its version, even if their version differs. Otherwise, replicas could replace
// each other's pods for hours, with many cold starts.
func (p *pool) isOutdated(now time.Time, pod *pod) bool {
	switch {
	case !p.otherVersion(pod):
		return false
	case pod.learnedAt.event <= p.since.event:
		return true
	case p.owner.Alone && pod.observed.Created.After(p.since.at):
		return false
	default:
		known := pod.learnedAt.at
		return known.Sub(pod.observed.Created) >= p.limits.ReadyTimeout || now.Sub(known) >= versionGrace
	}
}

// countVersions counts the usable pods with the current version and with an outdated version of the template and
// settings. serving is the number of current pods that are ready.
func (p *pool) countVersions(now time.Time) (serving, current, outdated int) {
	for _, pod := range p.pods {
		switch {
		case !pod.state.usable():
		case p.isOutdated(now, pod):
			outdated++
		case pod.state == ready:
			serving++
			current++
		default:
			current++
		}
	}
	return serving, current, outdated
}

// versionTarget returns the number of pods that the pool needs with the current template and settings. They must
// suffice for the minimum number of pods and for all leases, even for leases on draining pods. If any pod was used
// since the current version arrived, the number is at least 1.
func (p *pool) versionTarget() int {
	leases, used := len(p.queue), 0
	for _, pod := range p.pods {
		leases += pod.use.leases
		if !p.owner.Alone && pod.state.usable() && pod.lastUse().After(p.since.at) {
			used = 1 // another replica may use the pod for leases that are unknown here
		}
	}
	return max(p.podsFor(leases), p.minimum(), used)
}

// needsSurge reports whether the pool needs an additional pod to replace a serving outdated pod. Outdated pods are
// replaced one after another. Unused pools without a minimum number of pods need no replacement.
func (p *pool) needsSurge(now time.Time) bool {
	_, current, outdated := p.countVersions(now)
	wanted := p.versionTarget()
	return p.owner.Mine && outdated > 0 && current < wanted && (current == 0 || current+outdated <= wanted)
}

// replaceOutdated drains outdated pods that are no longer needed, because enough newer pods are ready.
func (p *pool) replaceOutdated(s *step) {
	serving, _, outdated := p.countVersions(s.at)
	if !p.owner.Mine || serving == 0 || outdated == 0 {
		return
	}
	surplus := serving + outdated - p.versionTarget()
	for _, pod := range p.pods {
		if surplus > 0 && pod.state.usable() && p.isOutdated(s.at, pod) {
			pod.drain(s, "it was made from another template or with other settings", removal{eviction: evictionTemplate})
			surplus--
		}
	}
}

// goneFor is the time for which the UIDs of deleted pods are stored. Late events about these pods arrive earlier.
const goneFor = 10 * time.Minute

// podIndex indexes the pods of all functions by name. It also contains the ids in use and the UIDs of deleted pods.
type podIndex struct {
	byName map[string]*pod
	// ids maps pod names to the ids by which Services select the pods. It includes pods of other function runners.
	ids map[string]string
	// idUses counts the pods with each id. Without it, each cold start would search all pods for an id.
	idUses map[string]int
	// gone maps the UIDs of deleted pods to their removal times, so that late events about these pods are ignored.
	gone map[string]time.Time
}

// freeSlot returns the pool's lowest free slot, and the name of its new pod. A slot is free if no pod has its name or
// its id. Pods that are being deleted and pods of other function runners also occupy slots. The id is checked in
// addition to the name, because the label of a pod from another process may contradict the pod's name.
func (x *podIndex) freeSlot(c Config, p *pool) (slot int, name string) {
	for slot = 1; ; slot++ {
		name = c.PodName(p.function, slot, p.predecessors[slot])
		if x.byName[name] == nil && x.idUses[c.PodID(p.function, slot)] == 0 {
			return slot, name
		}
	}
}

func (x *podIndex) setID(name, id string) {
	x.removeID(name)
	x.ids[name] = id
	x.idUses[id]++
}

func (x *podIndex) removeID(name string) {
	id, ok := x.ids[name]
	if !ok {
		return
	}
	delete(x.ids, name)
	if x.idUses[id]--; x.idUses[id] == 0 {
		delete(x.idUses, id)
	}
}
