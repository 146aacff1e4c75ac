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

// pool is the pods of one function, and the leases that wait for them.
type pool struct {
	function Function
	limits   Limits
	owner    Owner
	// version is what new pods are made from, and since when.
	version version
	since   moment
	// minPods is the number of pods that the pool keeps although no lease needs them.
	minPods int
	pods    []*pod   // by slot
	queue   []*lease // in order of arrival
	failure failure
	// predecessors are the UIDs of the last pods that are gone, by slot.
	predecessors map[int]string
	emptySince   time.Time // when the last pod was removed
	// reportPositions is true if positions in the queue must be reported too.
	reportPositions bool

	leasesTotal, coldStartsTotal int64
}

// countUsable counts the pods that take leases or will.
func (p *pool) countUsable() int {
	n := 0
	for _, pod := range p.pods {
		if pod.state.usable() {
			n++
		}
	}
	return n
}

// countDemand counts the waiting leases and those of usable pods.
func (p *pool) countDemand() int {
	demand := len(p.queue)
	for _, pod := range p.pods {
		if pod.state.usable() {
			demand += pod.use.leases
		}
	}
	return demand
}

// podsFor returns how many pods are meant for a number of leases.
func (p *pool) podsFor(leases int) int {
	return min((leases+p.limits.MaxWaitlistLength-1)/p.limits.MaxWaitlistLength, p.limits.MaxPods)
}

// minimum is the number of pods that this replica keeps although no lease needs them.
func (p *pool) minimum() int {
	if !p.owner.Mine {
		return 0
	}
	return min(p.minPods, p.limits.MaxPods)
}

// needsPod returns whether the pool needs a further pod, and why.
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

// inMinimum reports whether a pod belongs to the minimum. Outdated pods do until a pod of the current version serves.
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

// needsTick reports whether anything in a pool waits for time to pass.
func (p *pool) needsTick(now time.Time) bool {
	if !p.isManaged() {
		return false
	}
	unready := slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state != ready })
	return unready || len(p.queue) > 0 || p.countUsable() < p.minPods || p.needsSurge(now)
}

// canDelete reports whether a pool has been empty for so long that it can be forgotten. Until then it knows how its
// pods were named: the next one gets another name.
func (p *pool) canDelete(now time.Time) bool {
	return len(p.pods) == 0 && len(p.queue) == 0 && p.minPods == 0 && now.Sub(p.emptySince) >= goneFor
}

// configure takes over the settings of a pool.
func (p *pool) configure(s *step, c Config) {
	former := p.version
	p.limits = c.limitsOf(p.function)
	p.version = c.version(p.limits)
	if former.template != "" && former != p.version {
		p.since = s.moment
	}
	if former.template != p.version.template {
		p.failure.reset() // the former template, or the lack of one, may have been the cause
	}
	s.markDirty(p)
}

// add adds a pod to the pool.
func (p *pool) add(added *pod) {
	p.pods = append(p.pods, added)
	slices.SortStableFunc(p.pods, func(a, b *pod) int { return cmp.Compare(a.slot, b.slot) })
}

// remove removes a pod that is gone.
func (p *pool) remove(s *step, gone *pod) {
	p.pods = slices.DeleteFunc(p.pods, func(other *pod) bool { return other == gone })
	if gone.uid != "" {
		p.predecessors[gone.slot] = gone.uid
	}
	gone.setState(s.at, deleting, gone.reason) // for leases that it still holds
	p.emptySince = s.at
	s.markDirty(p)
}

// followObservation handles the last observation of a pod.
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
		pod.probe(s, 0) // Kubernetes shows only later that its containers run
	case p.owner.Mine && pod.lostReadiness(before):
		pod.check(s, true, "Kubernetes no longer reports it as ready, and its health is being probed")
	default:
		pod.trustReadiness(s)
	}
	pod.ran = pod.ran || o.containersRun()
	pod.countsAsAttempt = pod.countsAsAttempt || pod.state.usable()
}

// extendNeeded extends the expiries of pods that are needed or kept. It does so with each tick: a pod may live for a
// shorter time than the scan interval.
func (p *pool) extendNeeded(s *step) {
	for _, pod := range p.pods {
		lags := pod.uid != "" && pod.state <= draining && pod.expiry.annotationLags(s.at, p.limits.TTL)
		if lags && (p.isNeeded(pod) || p.inMinimum(s.at, pod)) {
			pod.extendExpiry(s)
		}
	}
}

// collectExpired drains the pods that have expired, and writes the expiry of pods without an annotation.
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

// trimSurplus drains pods beyond the limit: limits may have been lowered, or two replicas may have created pods concurrently.
// Idle pods are drained first, outdated ones before others, and those in the highest slots. Pods in use are drained only
// if enough other pods are ready. They finish their leases.
func (p *pool) trimSurplus(s *step) {
	limit := p.limits.MaxPods
	if slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state.usable() && p.otherVersion(pod) }) {
		limit += maxSurge // this replica or another one replaces outdated pods
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

// drainOrder ranks the pods that trim drains, the first one lowest.
func (p *pool) drainOrder(s *step, pod *pod) (worth int) {
	if pod.use.leases > 0 {
		worth += 2
	}
	if !p.isOutdated(s.at, pod) {
		worth++
	}
	return worth
}

// maxSurge is the number of pods beyond the limit that a function may have while an outdated pod is replaced.
const maxSurge = 1

// versionGrace is how long an outdated pod is left alone that another replica has just created. The other replica may
// not know the current version yet, and if each replica drained what others wait for, no caller would get a pod.
const versionGrace = time.Minute

// otherVersion reports whether a pod is of another version than new pods, whose template is known.
func (p *pool) otherVersion(pod *pod) bool {
	return pod.uid != "" && p.version.template != "" && pod.version() != p.version
}

// isOutdated reports whether a pod must be replaced because it is of another version.
//
// Versions have no order, and replicas of several versions may run for hours. The version that counts is that of the
// function's owner. Without membership each replica owns all functions, and if each replaced the other versions'
// pods, callers would get one cold start after the other: there, only pods from before this replica's version are
// outdated, and any other pod serves as well.
func (p *pool) isOutdated(now time.Time, pod *pod) bool {
	switch {
	case !p.otherVersion(pod):
		return false
	case pod.learnedAt.event <= p.since.event:
		return true
	case p.owner.Alone && pod.observed.Created.After(p.since.at):
		return false
	default:
		return pod.learnedAt.at.Sub(pod.observed.Created) >= p.limits.ReadyTimeout || now.Sub(pod.learnedAt.at) >= versionGrace
	}
}

// countVersions counts the usable pods by version: all current ones, those of them that serve, and the outdated ones.
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

// versionTarget is how many pods of the current version replace the outdated ones: as many as the pool's leases need,
// those of draining pods included, its minimum, and at least one if a pod was used since the version is in force.
func (p *pool) versionTarget() int {
	leases, used := len(p.queue), 0
	for _, pod := range p.pods {
		leases += pod.use.leases
		if !p.owner.Alone && pod.state.usable() && pod.lastUse().After(p.since.at) {
			used = 1 // by this replica or another one, whose leases are not known here
		}
	}
	return max(p.podsFor(leases), p.minimum(), used)
}

// needsSurge reports whether the pool needs a pod of the current version next to outdated ones, which serve until it is
// ready. Pods are replaced one after the other, and only in pools that are used or have a minimum.
func (p *pool) needsSurge(now time.Time) bool {
	_, current, outdated := p.countVersions(now)
	wanted := p.versionTarget()
	return p.owner.Mine && outdated > 0 && current < wanted && (current == 0 || current+outdated <= wanted)
}

// replaceOutdated drains the outdated pods that serving pods of the current version replace.
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

// goneFor is how long the end of a pod is remembered, which is longer than any event about the pod can be late.
const goneFor = 10 * time.Minute

// podIndex holds the pods of all pools.
type podIndex struct {
	byName map[string]*pod
	// ids counts the pods by id, foreign ones included.
	ids map[string]int
	// foreign are the ids of other function runners' pods, by the pod's name.
	foreign map[string]string
	// gone are the UIDs of pods that are gone, with the time: a late event must not bring them back.
	gone map[string]time.Time
}

func newPodIndex() podIndex {
	return podIndex{
		byName: make(map[string]*pod), ids: make(map[string]int),
		foreign: make(map[string]string), gone: make(map[string]time.Time),
	}
}

// add adds a pod. Its name is not in use.
func (x *podIndex) add(p *pod) {
	x.byName[p.name] = p
	x.countID(p.id, 1)
}

// remove removes a pod that is gone.
func (x *podIndex) remove(p *pod, now time.Time) {
	delete(x.byName, p.name)
	x.countID(p.id, -1)
	if p.uid != "" {
		x.gone[p.uid] = now
	}
}

// setForeign records the id of a foreign pod; empty if the pod is gone.
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

// freeSlot returns the lowest slot of a pool whose id no pod has, of whatever function or function runner, draining and
// deleting pods included: their names and Services are still taken. A pod that was found may have the name for one slot
// and the label of another.
func (x *podIndex) freeSlot(c Config, p *pool) (slot int, name string) {
	for slot = 1; ; slot++ {
		name = c.PodName(p.function, slot, p.predecessors[slot])
		if x.byName[name] == nil && x.ids[c.PodID(p.function, slot)] == 0 {
			return slot, name
		}
	}
}
