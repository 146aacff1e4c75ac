// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"time"
)

// extensionDelay is how long it may take until all replicas know an expiry that one of them
// extended: until the next tick, and then Kubernetes' time, which counts in seconds.
const extensionDelay = 5 * time.Second

// expiry is when an unused pod is deleted. Each pod carries it as an annotation, which all
// replicas read: that is all that they see of each other's use of the pod.
type expiry struct {
	at        time.Time
	written   time.Time // what the annotation says, or soon will
	elsewhere time.Time // the last one that another replica wrote; zero if none did
	emitted   time.Time // when an extension was last emitted
}

// see takes over what the annotation says. A pod without one gets one with the next scan.
func (e *expiry) see(annotation, now time.Time, ttl time.Duration) {
	if annotation.After(e.written) {
		e.written = annotation
	}
	if annotation.After(e.at) { // another replica may have used the pod
		e.at, e.elsewhere = annotation, annotation
	}
	if e.at.IsZero() {
		e.at = now.Add(ttl)
	}
}

// extend moves the expiry to a time to live from now, and reports whether it moved. It
// never comes before what is written, which other replicas rely on.
func (e *expiry) extend(now time.Time, ttl time.Duration) bool {
	end := now.Add(ttl)
	if !end.After(e.at) {
		return false
	}
	e.at = end
	return true
}

// lags reports whether the annotation is a tenth of the time to live behind one that would
// be written now.
func (e *expiry) lags(now time.Time, ttl time.Duration) bool {
	return now.Add(ttl).Sub(e.written) >= ttl/10
}

// due reports whether the expiry has to be written: if that makes a difference of a tenth
// of the time to live, and at most once in such a tenth.
func (e *expiry) due(now time.Time, ttl time.Duration) bool {
	return e.at.Sub(e.written) >= ttl/10 && now.Sub(e.emitted) >= ttl/10
}

// lost takes over an annotation that a write did not reach, or that another client removed.
func (e *expiry) lost(annotation, now time.Time, ttl time.Duration) {
	if annotation.Before(e.written) && now.Sub(e.emitted) >= ttl/10 {
		e.written = annotation
	}
}

// usedElsewhere reports whether another replica uses the pod: it extends the expiry each
// tenth of the time to live.
func (e *expiry) usedElsewhere(now time.Time, ttl time.Duration) bool {
	return now.Sub(e.elsewhere.Add(-ttl)) < ttl/10+extensionDelay
}

// extend extends the expiry of a pod that is used.
func (p *pod) extend(s *step) {
	if p.expiry.extend(s.at, p.pool.limits.TTL) {
		s.mark(p.pool)
	}
	p.writeExpiry(s)
}

// writeExpiry has the expiry of a pod written, if it is time.
func (p *pod) writeExpiry(s *step) {
	if p.uid == "" || !p.expiry.due(s.at, p.pool.limits.TTL) {
		return
	}
	p.expiry.written, p.expiry.emitted = p.expiry.at, s.at
	s.emit(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.expiry.at})
}

// usedElsewhere reports whether another replica uses the pod.
func (p *pod) usedElsewhere(now time.Time) bool {
	return p.expiry.usedElsewhere(now, p.pool.limits.TTL)
}

// extendNeeded extends the expiries of pods that are needed or kept. It does so with each
// tick, since a pod may live for a shorter time than there is between two scans.
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
		idle := pod.serves() && !p.needs(pod)
		switch {
		case idle && !s.at.Before(pod.expiry.at) && !p.keeps(s.at, pod):
			pod.drain(s, "it was not used for its time to live", removal{eviction: evictionTTL})
		case idle && p.outdated(s.at, pod) && !pod.usedElsewhere(s.at):
			pod.replace(s)
		}
		if pod.state.usable() {
			pod.expiry.lost(pod.seen.ReclaimAfter, s.at, p.limits.TTL)
			pod.writeExpiry(s)
		}
	}
}

// trim drains pods beyond the limit: limits may have been lowered, or two replicas may have
// created pods at a time. Idle ones go first; those in use finish their leases if there are
// enough others that serve. Pods that another replica uses are left to it.
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
			pod.replace(s)
		} else {
			pod.drain(s, "the function has more pods than it may have", removal{eviction: evictionSurplus})
		}
		count--
	}
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
			pod.replace(s)
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
			case !pod.serves():
				continue
			case !taken:
				oldest[pod.id] = pod
				continue
			case pod.older(first):
				oldest[pod.id] = pod
				first, pod = pod, first
			}
			why := "it shares its id, and so its Service, with the older pod " + first.name
			pod.drain(s, why, removal{eviction: evictionSurplus})
		}
	}
}
