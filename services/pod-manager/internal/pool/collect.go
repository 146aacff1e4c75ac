package pool

import (
	"maps"
	"slices"
	"time"
)

// endedFor is how long the end of a pod is remembered, which is longer than any
// event about it can be late.
const endedFor = 10 * time.Minute

// scan collects the pods that nobody used for their time to live, and repairs.
func (m *Machine) scan() {
	for _, p := range m.pools {
		for _, pod := range p.pods {
			switch {
			case pod.unneeded() && !m.now.Before(pod.reclaimAfter) && !m.keeps(pod):
				m.drain(pod, ending{reason: "nobody used it for its time to live", eviction: evictionTTL})
			case pod.unneeded() && m.outdated(pod) && !m.usedElsewhere(pod):
				m.drain(pod, outOfDate())
			}
			m.repair(pod)
		}
	}
	m.separate()
	for _, p := range m.pools {
		m.trim(p)
	}
	m.pools = slices.DeleteFunc(m.pools, m.forget)
	long := func(_ string, at time.Time) bool { return m.now.Sub(at) >= endedFor }
	maps.DeleteFunc(m.ended, long)
	maps.DeleteFunc(m.starved, long)
}

// needed says whether somebody uses a pod or waits for it.
func (p *pod) needed() bool {
	return p.active > 0 || p.state.usable() && len(p.pool.queue) > 0
}

// unneeded says whether a pod is there for nothing.
func (p *pod) unneeded() bool { return p.serves() && !p.needed() }

// forget drops a pool that has had nothing in it for a while, and says whether it did.
// Until then it knows how its pods were named: the next one gets another name.
func (m *Machine) forget(p *pool) bool {
	if len(p.pods) > 0 || len(p.queue) > 0 || p.minPods > 0 || m.now.Sub(p.emptySince) < endedFor {
		return false
	}
	delete(m.byFunction, p.function)
	m.unblock(p)
	m.changed[p.function] = struct{}{}
	return true
}

func outOfDate() ending {
	return ending{reason: "it was made from another template or with other settings", eviction: "template"}
}

// replaceOldPods drains the pods of other versions, since the pool is used.
func (m *Machine) replaceOldPods(p *pool) {
	for _, pod := range p.pods {
		if pod.state.usable() && m.outdated(pod) {
			m.drain(pod, outOfDate())
		}
	}
}

// newsDelay is how long it may take until all replicas know an end that one of them
// puts off: until the next tick, and then Kubernetes' time, which counts in seconds.
const newsDelay = 5 * time.Second

// keepNeeded puts off the ends of the pods that somebody uses or waits for: that is all
// that other replicas see of it. It does so with each tick, since a pod may live for a
// shorter time than there is between two scans.
func (m *Machine) keepNeeded(p *pool) {
	for _, pod := range p.pods {
		if pod.uid != "" && pod.state <= draining && (pod.needed() || m.keeps(pod)) && m.now.Add(p.limits.TTL).Sub(pod.writtenReclaim) >= p.limits.TTL/10 {
			m.putOff(pod)
		}
	}
}

// keep puts off the end of a pod that is used, unless it is to go.
func (m *Machine) keep(p *pod) {
	if p.state.usable() {
		m.putOff(p)
	}
}

// putOff puts off the end of a pod by its time to live. It never comes before what is
// written down, on which others rely.
func (m *Machine) putOff(p *pod) {
	if end := m.now.Add(p.pool.limits.TTL); end.After(p.reclaimAfter) {
		p.reclaimAfter = end
		m.touch(p.pool)
	}
	m.writeDown(p)
}

// writeDown has the end of a pod written down, at most once in a tenth of its time
// to live and only if that makes such a difference.
func (m *Machine) writeDown(p *pod) {
	tenth := p.pool.limits.TTL / 10
	if p.uid == "" || p.reclaimAfter.Sub(p.writtenReclaim) < tenth || m.now.Sub(p.extended) < tenth {
		return
	}
	p.writtenReclaim, p.extended = p.reclaimAfter, m.now
	m.act(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.reclaimAfter})
}

// repair has the end of a pod written down again where that came to nothing, or
// somebody wiped it out.
func (m *Machine) repair(p *pod) {
	if !p.state.usable() {
		return
	}
	if p.seen.ReclaimAfter.Before(p.writtenReclaim) && m.now.Sub(p.extended) >= p.pool.limits.TTL/10 {
		p.writtenReclaim = p.seen.ReclaimAfter
	}
	m.writeDown(p)
}
