// SPDX-License-Identifier: Apache-2.0

// Package pool decides which function pods there are and which leases they get.
//
// It is a state machine: events go in, actions come out. It does no I/O, has no clock of
// its own, starts nothing and knows no Kubernetes client, so whatever can happen to pods
// can be simulated in a test, a day in a second. The owner of a [Machine] calls it from one
// goroutine, carries out the actions in the order given, and returns their outcomes as
// events.
//
// Files, in reading order:
//   - config, event and action are the vocabulary;
//   - pod, expiry and health have a single pod, and pods the index of all;
//   - pool, failure and collect have the pods of one function, and when some are drained;
//   - queue and outofmemory have waiting leases;
//   - victims and capacity bound the pods of all pools;
//   - owner and reach decide what this replica may do where there are several;
//   - machine has the state, reconcile what follows from it, handle what each event does, and
//     status what others see.
//
// A file mostly uses files before it: nine of ten references go there.
//
// A pod passes through these states:
//
//	from             to        when
//	-                creating  the pool wants one more
//	-                starting  it is found (adopted)
//	creating         starting  Kubernetes shows it
//	creating         gone      it could not be created, or is not seen in time
//	starting         ready     it answers that it is healthy
//	ready            checking  a lease found it broken, its caller avoids it, or it was left without an
//	                           answer and does not answer when it is asked
//	checking         ready     it answers that it is healthy
//	ready, checking  starting  its containers stopped, and may start again
//	usable           draining  it failed, expired, is outdated or surplus, or is evicted
//	usable           deleting  another client deletes it
//	draining         deleting  it has no lease left
//	draining         starting  another replica used it, and it was sound
//	deleting         draining  its deletion failed
//	any              gone      Kubernetes does not have it any more
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
	all      *pods // of all pools
	// ownedSince is since when this replica owns the pool; zero if it always did.
	ownedSince time.Time
	// version is what new pods are made from, and since when.
	version version
	since   moment
	// minPods is how many pods the pool keeps although no lease needs them.
	minPods int
	pods    []*pod   // by slot
	queue   []*lease // first come, first served
	failure failure
	// predecessors are the UIDs of the last pods that are gone, by slot.
	predecessors map[int]string
	emptySince   time.Time // when its last pod went
	// needySince is when it joined the line without a usable pod; zero if it is not in line.
	needySince time.Time
	// reportPositions has positions in the queue reported too.
	reportPositions bool

	counts [podStates]int // of pods, as users see them

	leasesTotal, coldStartsTotal int64
}

// usable counts the pods that take leases or will.
func (p *pool) usable() int {
	n := 0
	for _, pod := range p.pods {
		if pod.state.usable() {
			n++
		}
	}
	return n
}

// demand counts the leases that usable pods hold and that wait.
func (p *pool) demand() int {
	demand := len(p.queue)
	for _, pod := range p.pods {
		if pod.state.usable() {
			demand += pod.use.leases
		}
	}
	return demand
}

// wanted is how many usable pods the pool should have for its leases and its minimum.
func (p *pool) wanted() int {
	return min(max(p.podsFor(p.demand()), p.minPods), p.limits.MaxPods)
}

// podsFor returns how many pods are meant for a number of leases.
func (p *pool) podsFor(leases int) int {
	return (leases + p.limits.MaxWaitlistLength - 1) / p.limits.MaxWaitlistLength
}

// needs reports whether a lease uses a pod or waits for it.
func (p *pool) needs(pod *pod) bool {
	return pod.use.leases > 0 || pod.state.usable() && len(p.queue) > 0
}

// keeps reports whether a pod is one of the minimum.
func (p *pool) keeps(now time.Time, kept *pod) bool {
	if !p.owner.Mine {
		return false
	}
	n := 0
	for _, pod := range p.pods {
		if n == p.minPods {
			return false
		}
		if !pod.state.usable() || p.outdated(now, pod) {
			continue
		}
		if n++; pod == kept {
			return true
		}
	}
	return false
}

// needsTick reports whether anything in a pool waits for time to pass.
func (p *pool) needsTick() bool {
	if !p.tends() {
		return false
	}
	unready := slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state != ready })
	return unready || len(p.queue) > 0 || p.usable() < p.minPods
}

// forgettable reports whether a pool has been empty for so long that it can be forgotten.
// Until then it knows how its pods were named: the next one gets another name.
func (p *pool) forgettable(now time.Time) bool {
	return len(p.pods) == 0 && len(p.queue) == 0 && p.minPods == 0 && now.Sub(p.emptySince) >= goneFor
}

// configure takes over the settings of a pool.
func (p *pool) configure(s *step, c Config) {
	former := p.version
	p.limits = c.limits(p.function)
	p.version = c.version(p.limits)
	if former.template != "" && former != p.version {
		p.since = s.moment
	}
	if former.template != p.version.template {
		p.failure.reset() // which may have been the former template's fault, or the lack of one
	}
	s.mark(p)
}

// add puts a pod into the pool.
func (p *pool) add(added *pod) {
	p.pods = append(p.pods, added)
	slices.SortStableFunc(p.pods, func(a, b *pod) int { return cmp.Compare(a.slot, b.slot) })
}

// remove takes a pod that is gone out of the pool.
func (p *pool) remove(s *step, gone *pod) {
	p.pods = slices.DeleteFunc(p.pods, func(other *pod) bool { return other == gone })
	if gone.uid != "" {
		p.predecessors[gone.slot] = gone.uid
	}
	gone.setState(s.at, deleting, gone.why) // for leases that it still holds
	p.emptySince = s.at
	s.mark(p)
}

// follow does what Kubernetes' last observation of a pod asks for.
func (p *pool) follow(s *step, pod *pod, before Observation) {
	o := pod.seen
	switch {
	case o.Deleting && pod.state.usable():
		pod.setState(s.at, deleting, "another client deleted it")
		p.countDeletion(s, pod)
	case o.Deleting:
		pod.setState(s.at, deleting, pod.why)
	case !pod.state.usable():
		pod.removal.unsound = pod.removal.unsound || o.Problem.Kind.broken()
	case o.Problem.Kind.broken():
		p.drainFailed(s, pod, o.Problem)
	case pod.stopped(before):
		pod.restart(s.at)
	case pod.state == starting && o.Address != "" && p.tends():
		pod.probe(s, 0) // Kubernetes shows only later that its containers run
	default:
		pod.trustReadiness(s)
	}
	pod.ran = pod.ran || o.running()
	pod.countsAsAttempt = pod.countsAsAttempt || pod.state.usable()
}
