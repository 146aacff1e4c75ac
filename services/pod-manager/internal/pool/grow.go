package pool

import (
	"slices"
	"time"
)

// grow creates the pods that a pool wants and may have.
func (m *Machine) grow(p *pool) {
	if p.failure.until.After(m.now) {
		m.unblock(p)
		return
	}
	for p.usable() < p.wanted() {
		if m.config.MaxPods > 0 && len(m.byName) >= m.config.MaxPods {
			m.block(p)
			return
		}
		m.create(p)
	}
	m.unblock(p)
}

// create asks for one more pod.
func (m *Machine) create(p *pool) {
	p.failure.expire(p.neededSince(m.now))
	slot := p.freeSlot()
	created := &pod{
		pool: p, slot: slot, state: creating, hoped: true, created: m.now, pendingSince: m.now,
		name: m.config.PodName(p.function, slot, p.predecessors[slot]),
	}
	created.reclaimAfter = m.now.Add(p.limits.TTL)
	created.writtenReclaim = created.reclaimAfter
	m.add(created)
	m.act(Create{Function: p.function, Slot: slot, Name: created.name, ReclaimAfter: created.reclaimAfter})
}

// neededSince is when the first came of those who wait; now if nobody waits.
func (p *pool) neededSince(now time.Time) time.Time {
	if len(p.queue) == 0 {
		return now
	}
	return p.queue[0].requested
}

// patience is how long a pool may be without a pod because all pods that there may
// be are in use by others, before one of them has to go.
const patience = 10 * time.Second

// block has a pool wait for room for a pod.
func (m *Machine) block(p *pool) {
	if !slices.Contains(m.blocked, p) {
		m.blocked = append(m.blocked, p)
	}
	m.makeRoom(p)
}

func (m *Machine) unblock(p *pool) {
	m.blocked = slices.DeleteFunc(m.blocked, func(other *pool) bool { return other == p })
}

// serveBlocked has the pool served that waits longest for room. It gets in line
// again for a further pod.
func (m *Machine) serveBlocked() {
	if len(m.blocked) > 0 {
		p := m.blocked[0]
		m.unblock(p)
		m.touch(p)
	}
}

// makeRoom has a pod of another pool go, unless enough are going already.
func (m *Machine) makeRoom(p *pool) {
	going := 0
	for _, pod := range m.byName {
		if !pod.state.usable() {
			going++
		}
	}
	if going >= len(m.blocked) {
		return
	}
	if victim := m.victim(p); victim != nil {
		m.drain(victim, ending{reason: "room is needed for a pod of " + p.function.Reference, eviction: "room"})
	}
}

// victim chooses the pod that goes for a pod of p: an idle one, the one unused for
// longest; for a pool without any pod, one of the pool that has the most; and for one
// that has waited long, the one used longest ago.
func (m *Machine) victim(p *pool) *pod {
	var victim *pod
	rank := 0
	for _, other := range m.pools {
		for _, candidate := range other.pods {
			r := m.rank(p, other, candidate)
			if r > rank || r == rank && r > 0 && candidate.turn < victim.turn {
				victim, rank = candidate, r
			}
		}
	}
	return victim
}

// rank says how well a pod of another pool suits as a victim; 0 if not at all.
func (m *Machine) rank(p, other *pool, candidate *pod) int {
	needy := p.usable() == 0
	switch {
	case other == p || candidate.state != ready && candidate.state != checking:
		return 0
	case candidate.active == 0 && len(other.queue) == 0:
		return 1 << 20
	case needy && other.usable() > 1:
		return other.usable()
	case needy && len(p.queue) > 0 && m.now.Sub(p.queue[0].requested) >= patience:
		return 1
	default:
		return 0
	}
}
