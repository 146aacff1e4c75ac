package pool

import (
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
			if pod.uid != "" && pod.seen.ReclaimAfter.IsZero() && !pod.seen.Deleting {
				m.act(Extend{Name: pod.name, UID: pod.uid, ReclaimAfter: pod.reclaimAfter})
			}
			switch {
			case pod.state == ready && pod.active == 0 && !m.now.Before(pod.reclaimAfter):
				m.drain(pod, ending{reason: "nobody used it for its time to live", eviction: evictionTTL})
			case pod.state == ready && pod.active == 0 && len(p.queue) == 0 && p.outdated(pod, m.config.Template):
				m.drain(pod, ending{reason: "it was made from an older template", eviction: "template"})
			}
		}
		m.trim(p)
	}
	m.pools = slices.DeleteFunc(m.pools, m.forget)
	for uid, at := range m.ended {
		if m.now.Sub(at) >= endedFor {
			delete(m.ended, uid)
		}
	}
}

// forget drops a pool that has had nothing in it for a while, and says whether it did.
// Until then it knows how its pods were named: the next one gets another name.
func (m *Machine) forget(p *pool) bool {
	if len(p.pods) > 0 || len(p.queue) > 0 || p.warm || m.now.Sub(p.emptySince) < endedFor {
		return false
	}
	delete(m.byFunction, p.function)
	m.unblock(p)
	m.changed[p.function] = struct{}{}
	return true
}

// trim drops idle pods beyond the limit: limits may have been lowered, or two
// replicas may have created pods at a time.
func (m *Machine) trim(p *pool) {
	surplus := p.usable() - p.limits.MaxPods
	for i := len(p.pods) - 1; i >= 0 && surplus > 0; i-- {
		if pod := p.pods[i]; pod.state == ready && pod.active == 0 {
			m.drain(pod, ending{reason: "the function has more pods than it may have", eviction: "surplus"})
			surplus--
		}
	}
}

// replaceOldPods drains the pods of older templates, since the pool is used.
func (m *Machine) replaceOldPods(p *pool) {
	for _, pod := range p.pods {
		if pod.state.usable() && p.outdated(pod, m.config.Template) {
			m.drain(pod, ending{reason: "it was made from an older template", eviction: "template"})
		}
	}
}

// outdated says whether a pod was made from another template than that of version.
func (p *pool) outdated(pod *pod, version string) bool {
	return pod.uid != "" && pod.seen.TemplateVersion != version
}

// keep puts off the end of a pod that is in use, and writes it down if a tenth of
// its time to live has passed since it was written.
func (m *Machine) keep(p *pod) {
	ttl := p.pool.limits.TTL
	p.reclaimAfter = m.now.Add(ttl)
	if p.uid == "" || p.reclaimAfter.Sub(p.writtenReclaim) < ttl/10 {
		return
	}
	p.writtenReclaim = p.reclaimAfter
	m.act(Extend{Name: p.name, UID: p.uid, ReclaimAfter: p.reclaimAfter})
}
