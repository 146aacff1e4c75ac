// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"math"
	"time"
)

// Reason is why a pod is created.
type Reason int

// The reasons.
const (
	// ForLeases is more leases than the pods of the pool are meant for.
	ForLeases Reason = iota
	// ForMinimum is a minimum of pods.
	ForMinimum
	// ForForecast is the leases that there will be at the present rate of requests.
	ForForecast
)

// String returns the reason's name.
func (r Reason) String() string { return [...]string{"leases", "minimum", "forecast"}[r] }

const (
	// evictionWindow is for how long no pod is created ahead after one was evicted for capacity: it
	// might be evicted next.
	evictionWindow = time.Minute
	// aheadShare is the part of the limit of all pools that is left to leases that wait: one pod in so many, and
	// one at least.
	aheadShare = 8
)

// podsFor returns how many pods are meant for a number of leases.
func (p *pool) podsFor(leases float64) int {
	return int(math.Ceil(leases / float64(p.limits.MaxWaitlistLength)))
}

// forecastPods returns how many pods the pool will need; zero if pods are not created ahead, and without a
// request for the time to live: a pod that has not been used for so long expires, whatever was forecast.
func (p *pool) forecastPods(now time.Time) int {
	if !p.ahead || now.Sub(p.forecast.quick.since) >= p.limits.TTL {
		return 0
	}
	return min(p.podsFor(p.forecast.leases(now)), p.limits.MaxPods)
}

// arrive counts a request that now waits or was granted.
func (p *pool) arrive(now time.Time) {
	if p.ahead {
		p.forecast.arrive(now)
	}
}

// recordNeed records how many pods the pool needs now.
func (p *pool) recordNeed(now time.Time) {
	if p.ahead {
		p.forecast.hold(now, p.demand())
		needed := max(p.forecastPods(now), p.podsFor(float64(p.demand())))
		p.forecast.peak.record(now, needed, p.limits.TTL)
	}
}

// preferred returns over how many pods leases are spread while these suffice: as many as were needed within the
// time to live, or two of them. Further pods get no leases, so that they expire: in the round of all pods each is
// used now and then, and would stay for ever.
func (p *pool) preferred(now time.Time) int {
	if !p.ahead {
		return math.MaxInt
	}
	return max(p.forecast.peak.at(now, p.limits.TTL), p.minPods, 1)
}

// growAhead creates the further pods that the forecast asks for. Unlike for a pod that leases wait for, no other one
// is evicted for them, and none is created after a failure, which may not be over. A first one is left to a lease:
// the last pod of a function may have been deleted on purpose.
func (m *Machine) growAhead(s *step, p *pool) {
	if !p.owner.Mine || p.failure.problem.Kind != None || p.usable() == 0 {
		return
	}
	for needed := p.forecastPods(s.at); p.usable() < needed && m.uncontended(s); {
		m.create(s, p, ForForecast)
	}
}

// uncontended reports whether there is capacity that no lease asks for.
func (m *Machine) uncontended(s *step) bool {
	c, pods := &m.capacity, len(m.pods.byName)
	if c.max <= 0 {
		return true
	}
	calm := len(c.line) == 0 && (c.evicted.IsZero() || s.age(c.evicted) >= evictionWindow)
	return calm && pods < c.max-max(c.max/aheadShare, 1) && c.free(s.at, pods)
}
