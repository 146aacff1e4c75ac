// Package pool decides which function pods there are and which leases they get.
//
// It is a state machine: events go in, actions come out. It does no I/O, has no clock of
// its own, starts nothing and knows no Kubernetes client, so whatever can happen to pods
// can be simulated in a test, a day in a second. The owner of a [Machine] calls it from one
// goroutine, carries out the actions in the order given, and returns their outcomes as
// events.
//
// Files, in reading order: event, action and config are the vocabulary; machine has the
// entry point and handle what each event does; capacity bounds all pools together; queue
// has waiting leases, verdict those whose pods ran out of memory; pool has one function's
// pods, failure the attempts to have one, pod a single one, expiry its end; status is what
// others see of all that. A file uses those that come after it.
//
// A pod passes through these states:
//
//	from             to        when
//	-                creating  the pool wants one more
//	-                starting  it is found (adopted)
//	creating         starting  Kubernetes shows it
//	creating         gone      it could not be created, or is not seen in time
//	starting         ready     it answers that it is well
//	ready            checking  a lease found it broken, or its caller avoids it
//	checking         ready     it answers that it is well
//	ready, checking  starting  its containers stopped, and may start again
//	usable           draining  it failed, expired, is outdated or surplus, or is evicted
//	usable           deleting  another client deletes it
//	draining         deleting  it has no lease left
//	draining         starting  another replica used it, and it was sound
//	deleting         draining  its deletion failed
//	any              gone      Kubernetes does not have it any more
//
// Usable are creating, starting, ready and checking: such a pod takes leases, or will.
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
	// needySince is since when it has been in line for a pod without having any; zero if
	// it is not.
	needySince time.Time
	// repeatReports has positions in the queue reported too.
	repeatReports bool

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
			demand += pod.use.active
		}
	}
	return demand
}

// wanted is how many usable pods the pool should have. Pods beyond that expire.
func (p *pool) wanted() int {
	wanted := (p.demand() + p.limits.MaxWaitlistLength - 1) / p.limits.MaxWaitlistLength
	return min(max(wanted, p.minPods), p.limits.MaxPods)
}

// needs reports whether a lease uses a pod or waits for it.
func (p *pool) needs(pod *pod) bool {
	return pod.use.active > 0 || pod.state.usable() && len(p.queue) > 0
}

// keeps reports whether a pod is one of the minimum: the first ones that are up to date, by
// slot.
func (p *pool) keeps(now time.Time, kept *pod) bool {
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

// pending reports whether anything in a pool waits for time to pass.
func (p *pool) pending() bool {
	return len(p.queue) > 0 || p.usable() < p.minPods || slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state != ready })
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
		p.failure.over() // which may have been the former template's fault, or the lack of one
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

// versionGrace is how long an outdated pod is left alone that another replica has just
// made: that may not know yet what is in force, and if each replica drained what others
// wait for, no caller would get one.
const versionGrace = time.Minute

// otherVersion reports whether a pod is of another version than new ones, whose template is
// known.
func (p *pool) otherVersion(pod *pod) bool {
	return pod.uid != "" && p.version.template != "" && pod.version() != p.version
}

// outdated reports whether a pod is to be replaced, since it is of an older version.
//
// Versions have no order by themselves, and replicas of several may run for hours. If each
// replaced what is not of its own, callers would get one cold start after the other. So
// outdated is what existed before this replica's version came. Any other pod was made by a
// replica with a version that is not known here, and serves as well.
func (p *pool) outdated(now time.Time, pod *pod) bool {
	switch {
	case !p.otherVersion(pod):
		return false
	case pod.known.event <= p.since.event:
		return true
	case pod.seen.Created.After(p.since.at):
		return false
	default:
		return pod.known.at.Sub(pod.seen.Created) >= p.limits.ReadyTimeout || now.Sub(pod.known.at) >= versionGrace
	}
}

// replaceOutdated drains the outdated pods, since the pool is used.
func (p *pool) replaceOutdated(s *step) {
	for _, pod := range p.pods {
		if pod.state.usable() && p.outdated(s.at, pod) {
			pod.drain(s, outdatedReason, removal{eviction: evictionTemplate})
		}
	}
}

const (
	outdatedReason   = "it was made from another template or with other settings"
	evictionTemplate = "template"
	evictionSurplus  = "surplus"
)

// extendNeeded extends the expiries of pods that are needed or kept. It does so with each
// tick, since a pod may live for a shorter time than there is between two scans.
func (p *pool) extendNeeded(s *step) {
	for _, pod := range p.pods {
		if pod.uid != "" && pod.state <= draining && (p.needs(pod) || p.keeps(s.at, pod)) && pod.expiry.lags(s.at, p.limits.TTL) {
			pod.extend(s)
		}
	}
}

// collect drains the pods that have expired, and the outdated ones that are not used. It
// repairs the annotations of the others.
func (p *pool) collect(s *step) {
	for _, pod := range p.pods {
		idle := pod.serves() && !p.needs(pod)
		switch {
		case idle && !s.at.Before(pod.expiry.at) && !p.keeps(s.at, pod):
			pod.drain(s, "nobody used it for its time to live", removal{eviction: evictionTTL})
		case idle && p.outdated(s.at, pod) && !pod.usedElsewhere(s.at):
			pod.drain(s, outdatedReason, removal{eviction: evictionTemplate})
		}
		if pod.state.usable() {
			pod.expiry.lost(pod.seen.ReclaimAfter, s.at, p.limits.TTL)
			pod.writeExpiry(s)
		}
	}
}

// trim drains pods beyond the limit: limits may have been lowered, or two replicas may have
// created pods at a time. Idle ones go first; those in use finish their leases if there are
// enough others that serve.
func (p *pool) trim(s *step) {
	p.trimTo(s, func(pod *pod) bool { return pod.state.usable() }, func(pod *pod) bool { return pod.use.active == 0 })
	p.trimTo(s, func(pod *pod) bool { return pod.state == ready }, func(*pod) bool { return true })
}

// trimTo drains ready pods that suit until no more than the limit count: outdated ones
// first, and then those in the highest slots.
func (p *pool) trimTo(s *step, counts, suits func(*pod) bool) {
	var outdated, rest []*pod
	for _, pod := range slices.Backward(p.pods) {
		switch {
		case !counts(pod), p.ownedElsewhere(s.at, pod):
		case p.outdated(s.at, pod):
			outdated = append(outdated, pod)
		default:
			rest = append(rest, pod)
		}
	}
	count := len(outdated) + len(rest)
	for i, pod := range append(outdated, rest...) {
		if count <= p.limits.MaxPods || pod.state != ready || !suits(pod) {
			continue
		}
		if i < len(outdated) {
			pod.drain(s, outdatedReason, removal{eviction: evictionTemplate})
		} else {
			pod.drain(s, "the function has more pods than it may have", removal{eviction: evictionSurplus})
		}
		count--
	}
}

// ownedElsewhere reports whether a pod is of another version, and used by the replica that
// made it: that one may have drained one of this version for it, which is still there.
func (p *pool) ownedElsewhere(now time.Time, pod *pod) bool {
	return p.otherVersion(pod) && !p.outdated(now, pod) && pod.usedElsewhere(now)
}

// follow does what Kubernetes' last observation of a pod asks for.
func (p *pool) follow(s *step, pod *pod, before Observation) {
	o := pod.seen
	switch {
	case o.Deleting && pod.state.usable():
		pod.setState(s.at, deleting, "somebody else deleted it")
		p.loseDeleted(s, pod)
	case o.Deleting:
		pod.setState(s.at, deleting, pod.why)
	case !pod.state.usable():
		pod.removal.unsound = pod.removal.unsound || o.Problem.Kind.broken()
	case o.Problem.Kind.broken():
		p.fail(s, pod, o.Problem)
	case pod.stopped(before):
		pod.restart(s.at)
	case pod.state == starting && o.Address != "":
		pod.probe(s, 0) // Kubernetes shows only later that its containers run
	}
	pod.ran = pod.ran || o.running()
	pod.countsAsAttempt = pod.countsAsAttempt || pod.state.usable()
}
