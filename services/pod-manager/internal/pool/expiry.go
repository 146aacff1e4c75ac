// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

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
