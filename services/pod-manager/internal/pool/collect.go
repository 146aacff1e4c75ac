// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"time"
)

// extendNeeded extends the expiries of pods that are needed or kept. It does so with each
// tick: a pod may live for a shorter time than there is between two scans.
func (p *pool) extendNeeded(s *step) {
	for _, pod := range p.pods {
		lags := pod.uid != "" && pod.state <= draining && pod.expiry.lags(s.at, p.limits.TTL)
		if lags && (p.needs(pod) || p.keeps(s.at, pod)) {
			pod.extend(s)
		}
	}
}

// collect drains the pods that have expired, and the outdated ones that are not used. It
// repairs the annotations of the others.
func (p *pool) collect(s *step) {
	for _, pod := range p.pods {
		unneeded := pod.confirmed() && !p.needs(pod)
		switch {
		case unneeded && !s.at.Before(pod.expiry.at) && !p.keeps(s.at, pod):
			pod.drain(s, "it was not used for its time to live", removal{eviction: evictionTTL})
		case unneeded && p.outdated(s.at, pod) && !pod.usedElsewhere(s.at):
			pod.replace(s, true)
		}
		if pod.state.usable() {
			pod.expiry.restoreWritten(pod.seen.ReclaimAfter, s.at, p.limits.TTL)
			pod.writeExpiry(s)
		}
	}
}

// trim drains pods beyond the limit: limits may have been lowered, or two replicas may have
// created pods at a time. Idle ones go first; those in use finish their leases if there are
// enough others that serve. Pods that another replica uses are left to it.
func (p *pool) trim(s *step) {
	p.trimTo(s, func(pod *pod) bool { return pod.state.usable() }, func(pod *pod) bool { return pod.use.leases == 0 })
	p.trimTo(s, func(pod *pod) bool { return pod.state == ready }, func(*pod) bool { return true })
}

// trimTo drains ready pods that suit until no more than the limit count: outdated ones
// first, and then those in the highest slots.
func (p *pool) trimTo(s *step, counts, suits func(*pod) bool) {
	var outdated, rest []*pod
	for _, pod := range slices.Backward(p.pods) {
		switch {
		case !counts(pod), pod.usedElsewhere(s.at):
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
			pod.replace(s, false)
		} else {
			pod.drain(s, "the function has more pods than it may have", removal{eviction: evictionSurplus})
		}
		count--
	}
}

// versionGrace is how long an outdated pod is left alone that another replica has just made. The
// other replica may not know the current version yet, and if each replica drained what others wait
// for, no caller would get one.
const versionGrace = time.Minute

// otherVersion reports whether a pod is of another version than new ones, whose template is
// known.
func (p *pool) otherVersion(pod *pod) bool {
	return pod.uid != "" && p.version.template != "" && pod.version() != p.version
}

// outdated reports whether a pod must be replaced because it is of another version.
//
// Versions have no order by themselves, and replicas of several may run for hours. The version that counts is that of
// the function's owner. Without membership each replica owns all functions, and if each replaced what is not of its
// own version, callers would get one cold start after the other: there, outdated is what existed before this
// replica's version came, and any other pod serves as well.
func (p *pool) outdated(now time.Time, pod *pod) bool {
	switch {
	case !p.otherVersion(pod):
		return false
	case pod.known.event <= p.since.event:
		return true
	case p.owner.Alone && pod.seen.Created.After(p.since.at):
		return false
	default:
		return pod.known.at.Sub(pod.seen.Created) >= p.limits.ReadyTimeout || now.Sub(pod.known.at) >= versionGrace
	}
}

// replaceOutdated drains the outdated pods of a pool that is used.
func (p *pool) replaceOutdated(s *step) {
	for _, pod := range p.pods {
		if pod.state.usable() && p.outdated(s.at, pod) {
			pod.replace(s, false)
		}
	}
}

// separate drains the younger one of two pods with the same id: they share a Service, so
// what is meant for one may reach the other. Replicas that did not know of each other make
// such twins, and agree on which one is drained.
func separate(s *step, pools []*pool) {
	oldest := make(map[string]*pod)
	for _, p := range pools {
		for _, pod := range p.pods {
			first, taken := oldest[pod.id]
			switch {
			case !pod.confirmed():
				continue
			case !taken:
				oldest[pod.id] = pod
				continue
			case pod.older(first):
				oldest[pod.id] = pod
				first, pod = pod, first
			}
			why := "it shares its id, and so its Service, with the older pod " + first.name
			if pod.pool.owner.Mine {
				pod.drain(s, why, removal{eviction: evictionSurplus})
			}
		}
	}
}
