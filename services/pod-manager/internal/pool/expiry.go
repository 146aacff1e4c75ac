// SPDX-License-Identifier: Apache-2.0

package pool

import (
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
	// spread delays the pod's extensions by up to a twentieth of the time to live, in 1/256 of
	// that: pods that were used at one time are not all extended at one time.
	spread uint8
}

// interval is the least time between two extensions.
func (e *expiry) interval(ttl time.Duration) time.Duration {
	return ttl/10 + ttl/20*time.Duration(e.spread)/256
}

// longestInterval is the longest one of any pod.
func longestInterval(ttl time.Duration) time.Duration { return ttl/10 + ttl/20 }

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

// lags reports whether the annotation is an interval behind one that would be written now.
func (e *expiry) lags(now time.Time, ttl time.Duration) bool {
	return now.Add(ttl).Sub(e.written) >= e.interval(ttl)
}

// due reports whether the expiry has to be written: if that makes a difference of an interval,
// and at most once in it.
func (e *expiry) due(now time.Time, ttl time.Duration) bool {
	return e.at.Sub(e.written) >= e.interval(ttl) && now.Sub(e.emitted) >= e.interval(ttl)
}

// ends reports whether a replica that knows the annotation may delete the pod before it learns of an extension that
// is written now.
func (e *expiry) ends(now time.Time) bool {
	return !e.written.IsZero() && !now.Add(extensionDelay).Before(e.written)
}

// restoreWritten takes over an annotation that a write did not reach, or that another client removed.
func (e *expiry) restoreWritten(annotation, now time.Time, ttl time.Duration) {
	if annotation.Before(e.written) && now.Sub(e.emitted) >= e.interval(ttl) {
		e.written = annotation
	}
}

// usedElsewhere reports whether another replica uses the pod: it extends the expiry once in an
// interval.
func (e *expiry) usedElsewhere(now time.Time, ttl time.Duration) bool {
	return now.Sub(e.elsewhere.Add(-ttl)) < longestInterval(ttl)+extensionDelay
}

// extend extends the expiry of a pod that is used.
func (p *pod) extend(s *step) {
	if p.expiry.extend(s.at, p.pool.limits.TTL) {
		s.mark(p.pool)
	}
	p.writeExpiry(s)
}

// writeExpiry emits the extension of a pod's expiry, if it is time.
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
