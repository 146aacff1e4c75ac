// SPDX-License-Identifier: Apache-2.0

// Package pool decides which function pods exist and which leases they get.
//
// It is a state machine: events go in, actions come out. It does no I/O, has no clock of its own, starts no goroutine
// and uses no Kubernetes client, so whatever can happen to pods can be simulated in a test, a day in a second. The
// owner of a [Machine] calls it from one goroutine, carries out the actions in the order given, and returns their
// outcomes as events.
//
// Files, in reading order. A file uses files before it; test/arrows_test.go bounds the exceptions:
//   - config, event and action are the vocabulary;
//   - pod is one pod's life cycle and expiry, health its probes and failures;
//   - pool is the pods of one function, and their versions;
//   - queue is the waiting leases;
//   - eviction bounds the pods of all pools;
//   - ownership and connectivity restrict what this replica does if there are several;
//   - machine holds the state and handles each event, and status is the view for others.
//
// A pod passes through these states:
//
//	from             to        when
//	-                creating  the pool wants one more
//	-                starting  it is found (adopted)
//	creating         starting  Kubernetes shows it
//	creating         gone      it could not be created, or is not observed in time
//	starting         ready     it answers that it is healthy
//	ready            checking  a lease reported it as broken, its caller avoids it, a caller gave up waiting and it does
//	                           not answer a probe, or Kubernetes no longer reports it as ready
//	checking         ready     it answers that it is healthy
//	ready, checking  starting  its containers stopped, and may start again
//	usable           draining  it failed, expired, is outdated or surplus, or is evicted
//	usable           deleting  another client deletes it
//	draining         deleting  it has no lease left
//	deleting         draining  its deletion failed
//	any              gone      it no longer exists in Kubernetes
//
// Usable is the group of creating, starting, ready and checking: such a pod takes leases, or will.
package pool

import (
	"cmp"
	"slices"
	"time"
)

// pool holds the pods of a function, and the leases that wait for these pods.
type pool struct {
	function Function
	limits   Limits
	owner    Owner
	// version is the current version of new pods, and since the event that made it current.
	version version
	since   moment
	// minPods is the minimum number of pods, which exist although no lease needs them.
	minPods int
	pods    []*pod   // sorted by slot
	queue   []*lease // sorted by arrival
	failure failure
	// predecessors maps a slot to the UID of its last deleted pod.
	predecessors map[int]string
	emptySince   time.Time // removal of the last pod
	// reportPositions is true if changed positions in the queue must be reported too.
	reportPositions bool

	leasesTotal, coldStartsTotal int64
}

// countUsable counts the usable pods.
func (p *pool) countUsable() int {
	n := 0
	for _, pod := range p.pods {
		if pod.state.usable() {
			n++
		}
	}
	return n
}

// countDemand counts the waiting leases and the leases of usable pods.
func (p *pool) countDemand() int {
	demand := len(p.queue)
	for _, pod := range p.pods {
		if pod.state.usable() {
			demand += pod.use.leases
		}
	}
	return demand
}

// podsFor returns the number of pods for a number of leases.
func (p *pool) podsFor(leases int) int {
	return min((leases+p.limits.MaxWaitlistLength-1)/p.limits.MaxWaitlistLength, p.limits.MaxPods)
}

// minimum returns the minimum number of pods. It is 0 if another replica owns the pool.
func (p *pool) minimum() int {
	if !p.owner.Mine {
		return 0
	}
	return min(p.minPods, p.limits.MaxPods)
}

// needsPod reports whether the pool needs a further pod, and returns the reason.
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

// isNeeded reports whether a lease uses a pod or waits for it.
func (p *pool) isNeeded(pod *pod) bool {
	return pod.use.leases > 0 || pod.state.usable() && len(p.queue) > 0
}

// inMinimum reports whether a pod belongs to the minimum. Outdated pods belong to it until a current pod serves.
func (p *pool) inMinimum(now time.Time, kept *pod) bool {
	serving, _, _ := p.countVersions(now)
	n := 0
	for _, pod := range p.pods {
		if n == p.minimum() {
			return false
		}
		if !pod.state.usable() || serving > 0 && p.isOutdated(now, pod) {
			continue
		}
		if n++; pod == kept {
			return true
		}
	}
	return false
}

// needsTick reports whether a timeout of the pool is running.
func (p *pool) needsTick(now time.Time) bool {
	if !p.isManaged() {
		return false
	}
	unready := slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state != ready })
	return unready || len(p.queue) > 0 || p.countUsable() < p.minPods || p.needsSurge(now)
}

// canDelete reports whether a pool was empty for long enough to be deleted. Until then it stores the UIDs of its
// former pods, so that new pods get new names.
func (p *pool) canDelete(now time.Time) bool {
	return len(p.pods) == 0 && len(p.queue) == 0 && p.minPods == 0 && now.Sub(p.emptySince) >= goneFor
}

// configure applies new settings to the pool.
func (p *pool) configure(s *step, c Config) {
	former := p.version
	p.limits = c.limitsOf(p.function)
	p.version = c.version(p.limits)
	if former.template != "" && former != p.version {
		p.since = s.moment
	}
	if former.template != p.version.template {
		p.failure.reset() // the former template may have caused the failures
	}
	s.markDirty(p)
}

// add adds a pod to the pool.
func (p *pool) add(added *pod) {
	p.pods = append(p.pods, added)
	slices.SortStableFunc(p.pods, func(a, b *pod) int { return cmp.Compare(a.slot, b.slot) })
}

// remove removes a deleted pod.
func (p *pool) remove(s *step, gone *pod) {
	p.pods = slices.DeleteFunc(p.pods, func(other *pod) bool { return other == gone })
	if gone.uid != "" {
		p.predecessors[gone.slot] = gone.uid
	}
	gone.setState(s.at, deleting, gone.reason) // for its remaining leases
	p.emptySince = s.at
	s.markDirty(p)
}

// followObservation updates the state of a pod after an observation.
func (p *pool) followObservation(s *step, pod *pod, before Observation) {
	o := pod.observed
	switch {
	case o.Deleting && pod.state.usable():
		pod.setState(s.at, deleting, "another client deleted it")
		p.countDeletion(s, pod)
	case o.Deleting:
		pod.setState(s.at, deleting, pod.reason)
	case !pod.state.usable():
		pod.removal.unsound = pod.removal.unsound || o.Problem.Kind.broken()
	case o.Problem.Kind.broken():
		p.drainFailed(s, pod, o.Problem)
	case pod.containersStopped(before):
		pod.restart(s.at)
	case pod.state == starting && o.Address != "" && p.isManaged():
		pod.probe(s, 0) // the Kubernetes API reports running containers late
	case p.owner.Mine && pod.lostReadiness(before):
		pod.check(s, true, "Kubernetes no longer reports it as ready, and its health is being probed")
	default:
		pod.trustReadiness(s)
	}
	pod.ran = pod.ran || o.containersRun()
	pod.countsAsAttempt = pod.countsAsAttempt || pod.state.usable()
}

// extendNeeded extends the expiries of needed pods and of the minimum. We do this with each tick, because the time to
// live may be shorter than the scan interval.
func (p *pool) extendNeeded(s *step) {
	for _, pod := range p.pods {
		lags := pod.uid != "" && pod.state <= draining && pod.expiry.annotationLags(s.at, p.limits.TTL)
		if lags && (p.isNeeded(pod) || p.inMinimum(s.at, pod)) {
			pod.extendExpiry(s)
		}
	}
}

// collectExpired drains expired pods, and writes the expiry of pods without an annotation.
func (p *pool) collectExpired(s *step) {
	for _, pod := range p.pods {
		if pod.confirmed() && !p.isNeeded(pod) && !s.at.Before(pod.expiry.at) && !p.inMinimum(s.at, pod) {
			pod.drain(s, "it was not used for its time to live", removal{eviction: evictionTTL})
		}
		if pod.state.usable() {
			pod.writeExpiry(s)
		}
	}
}

// trimSurplus drains pods above the limit, after the limit was lowered or two replicas created pods concurrently. It
// drains idle pods first, outdated pods before current pods, and higher slots before lower slots. It drains pods in
// use only if enough pods are ready. Drained pods finish their leases.
func (p *pool) trimSurplus(s *step) {
	limit := p.limits.MaxPods
	if slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state.usable() && p.otherVersion(pod) }) {
		limit += maxSurge // some replica replaces outdated pods
	}
	var candidates []*pod
	for _, pod := range slices.Backward(p.pods) {
		if pod.state == ready {
			candidates = append(candidates, pod)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *pod) int { return cmp.Compare(p.drainOrder(s, a), p.drainOrder(s, b)) })
	usable, serving := p.countUsable(), len(candidates)
	for _, pod := range candidates {
		if serving > limit || usable > limit && pod.use.leases == 0 {
			pod.drain(s, "the function has more pods than it may have", removal{eviction: evictionSurplus})
			usable--
			serving--
		}
	}
}

// drainOrder ranks the pods that trimSurplus drains, lowest first.
func (p *pool) drainOrder(s *step, pod *pod) (worth int) {
	if pod.use.leases > 0 {
		worth += 2
	}
	if !p.isOutdated(s.at, pod) {
		worth++
	}
	return worth
}

// maxSurge is the maximum number of pods above the limit while an outdated pod is replaced.
const maxSurge = 1

// versionGrace is the time during which a new pod of another replica does not count as outdated. The other replica may
// not have the current version yet, and callers would get no pod if each replica drained the pods that callers of its
// peers wait for.
const versionGrace = time.Minute

// otherVersion reports whether a pod differs from the current version. It is false while the template is unknown.
func (p *pool) otherVersion(pod *pod) bool {
	return pod.uid != "" && p.version.template != "" && pod.version() != p.version
}

// isOutdated reports whether a pod must be replaced because of its version.
//
// Versions are not ordered, and replicas of several versions may run for hours. The version of the function's owner
// counts. Without membership each replica owns all functions, and callers would get a series of cold starts if each
// replica replaced the pods of the other versions. So without membership, only pods from before this replica's version
// are outdated, and every other pod serves.
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

// countVersions counts the usable pods by version: current pods, current pods that serve, and outdated pods.
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

// versionTarget returns the number of current pods that replace the outdated pods: enough for the pool's leases,
// including the leases of draining pods, at least the minimum, and at least 1 if a pod was used under the current
// version.
func (p *pool) versionTarget() int {
	leases, used := len(p.queue), 0
	for _, pod := range p.pods {
		leases += pod.use.leases
		if !p.owner.Alone && pod.state.usable() && pod.lastUse().After(p.since.at) {
			used = 1 // maybe by another replica, whose leases are unknown here
		}
	}
	return max(p.podsFor(leases), p.minimum(), used)
}

// needsSurge reports whether the pool needs a current pod next to outdated pods, which serve until the current pod is
// ready. Pods are replaced sequentially, and only in pools that are used or have a minimum.
func (p *pool) needsSurge(now time.Time) bool {
	_, current, outdated := p.countVersions(now)
	wanted := p.versionTarget()
	return p.owner.Mine && outdated > 0 && current < wanted && (current == 0 || current+outdated <= wanted)
}

// replaceOutdated drains the outdated pods that serving current pods replace.
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

// goneFor is the time for which deleted pods are remembered. Events about a pod are never late by more.
const goneFor = 10 * time.Minute

// podIndex holds the pods of all pools.
type podIndex struct {
	byName map[string]*pod
	// ids counts the pods by id, including foreign pods.
	ids map[string]int
	// foreign maps the names of other function runners' pods to their ids.
	foreign map[string]string
	// gone maps the UIDs of deleted pods to the time of their removal: a late event must not restore a pod.
	gone map[string]time.Time
}

func newPodIndex() podIndex {
	return podIndex{
		byName: make(map[string]*pod), ids: make(map[string]int),
		foreign: make(map[string]string), gone: make(map[string]time.Time),
	}
}

// add adds a pod. Its name must be free.
func (x *podIndex) add(p *pod) {
	x.byName[p.name] = p
	x.countID(p.id, 1)
}

// remove removes a deleted pod.
func (x *podIndex) remove(p *pod, now time.Time) {
	delete(x.byName, p.name)
	x.countID(p.id, -1)
	if p.uid != "" {
		x.gone[p.uid] = now
	}
}

// setForeign stores the id of a foreign pod. An empty id removes the pod.
func (x *podIndex) setForeign(name, id string) {
	if former, ok := x.foreign[name]; ok {
		x.countID(former, -1)
		delete(x.foreign, name)
	}
	if id != "" {
		x.foreign[name] = id
		x.countID(id, 1)
	}
}

func (x *podIndex) countID(id string, n int) {
	if x.ids[id] += n; x.ids[id] == 0 {
		delete(x.ids, id)
	}
}

// freeSlot returns the lowest slot of a pool with a free name and id. Draining and deleting pods, pods of other
// functions and pods of other function runners still use their names and Services. The label of an adopted pod may
// contradict its name.
func (x *podIndex) freeSlot(c Config, p *pool) (slot int, name string) {
	for slot = 1; ; slot++ {
		name = c.PodName(p.function, slot, p.predecessors[slot])
		if x.byName[name] == nil && x.ids[c.PodID(p.function, slot)] == 0 {
			return slot, name
		}
	}
}
