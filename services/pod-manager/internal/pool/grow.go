package pool

import "time"

// grow creates the pods that a pool wants and may have.
func (m *Machine) grow(p *pool) {
	if p.failure.backsOff(p.demand() > 0, m.now) {
		m.unblock(p)
		return
	}
	for p.usable() < p.wanted() {
		if !m.admitted(p) {
			m.block(p)
			return
		}
		m.unblock(p) // for a further pod it gets in line again
		m.create(p)
	}
	m.unblock(p)
}

// create asks for one more pod.
func (m *Machine) create(p *pool) {
	p.failure.expire(p.neededSince(m.now))
	slot, name := m.freeSlot(p)
	created := &pod{
		pool: p, slot: slot, state: creating, hoped: true, created: m.now, pendingSince: m.now, name: name,
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
