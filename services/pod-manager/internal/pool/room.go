package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// patience is how long a pool may be without a pod because all pods that there may
// be are in use by others, before one of them has to go; and how long each of them
// may be used before.
const patience = 10 * time.Second

// room says whether there may be a further pod.
func (m *Machine) room() bool {
	return m.config.MaxPods <= 0 || len(m.byName) < m.config.MaxPods
}

// admitted says whether p may have a further pod: there is room, and nobody is before
// it in line.
func (m *Machine) admitted(p *pool) bool {
	if m.config.MaxPods <= 0 {
		return true
	}
	first := m.first()
	return m.room() && (first == nil || first == p)
}

// first returns the pool that is next to get a pod; nil if none is in line. Those
// that have none come before those that want more, and else who came first.
func (m *Machine) first() *pool {
	for _, p := range m.blocked {
		if p.usable() == 0 {
			return p
		}
	}
	if len(m.blocked) > 0 {
		return m.blocked[0]
	}
	return nil
}

// block has a pool wait in line for room for a pod, if anybody waits for that.
func (m *Machine) block(p *pool) {
	if len(p.queue) == 0 {
		m.unblock(p)
		return
	}
	if !slices.Contains(m.blocked, p) {
		m.blocked = append(m.blocked, p)
	}
	if p.usable() > 0 {
		p.needySince = time.Time{}
	} else if p.needySince.IsZero() {
		p.needySince = m.now
	}
	m.makeRoom(p)
}

func (m *Machine) unblock(p *pool) {
	p.needySince = time.Time{}
	m.blocked = slices.DeleteFunc(m.blocked, func(other *pool) bool { return other == p })
}

// refuseStranded refuses those for whom there was no room for as long as a pod may take to
// become ready: Kubernetes may not end the pods that are to go, or too many want one.
func (m *Machine) refuseStranded(p *pool) {
	if p.needySince.IsZero() {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if patience := p.limits.ReadyTimeout; m.now.Sub(l.requested) >= patience && m.now.Sub(p.needySince) >= patience {
			m.reject(l, fault.Exhausted, fmt.Sprintf("there are %d function pods, which is the limit, and none of them made room for one of %s for %s", m.config.MaxPods, p.function.Reference, patience), time.Second)
		}
	}
	if len(p.queue) == 0 {
		m.unblock(p)
	}
}

// makeRoom has a pod of another pool go, unless enough are going already. Those that
// take too long do not count: they may never go.
func (m *Machine) makeRoom(p *pool) {
	going := 0
	for _, pod := range m.byName {
		if !pod.state.usable() && m.now.Sub(pod.endingAt) < deletePatience {
			going++
		}
	}
	if going >= len(m.byName)-m.config.MaxPods+len(m.blocked) {
		return
	}
	if victim := m.victim(p); victim != nil {
		m.drain(victim, ending{reason: "room is needed for a pod of " + p.function.Reference, eviction: "room", idle: m.idle(victim)})
	}
}

// victim chooses the pod that goes for a pod of p: an idle one, the one unused for
// longest; for a pool without any pod, one of the pool that has the most; and for one
// that has been without for long, the one used longest ago.
//
// Other replicas choose among the same pods. So what counts is what all of them see.
func (m *Machine) victim(p *pool) *pod {
	var victim *pod
	rank := 0
	for _, other := range m.pools {
		for _, candidate := range other.pods {
			r := m.rank(p, other, candidate)
			if r > rank || r == rank && r > 0 && m.goesBefore(candidate, victim) {
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
	case m.idle(candidate):
		return 1 << 20
	case needy && other.usable() > 1:
		return other.usable()
	case needy && m.now.Sub(p.needySince) >= patience && m.now.Sub(candidate.readySince) >= patience:
		return 1
	default:
		return 0
	}
}

// goesBefore says whether a is the better choice of two pods that suit equally well: a
// replica gives up its own before those that another one uses, and else the one used
// longest ago.
func (m *Machine) goesBefore(a, b *pod) bool {
	if usedA, usedB := m.usedElsewhere(a), m.usedElsewhere(b); usedA != usedB {
		return usedB
	}
	return cmp.Or(m.lastUse(a).Compare(m.lastUse(b)), cmp.Compare(a.turn, b.turn)) < 0
}

// lastUse is when a pod was last used, as far as its end tells.
func (m *Machine) lastUse(p *pod) time.Time {
	if p.active > 0 {
		return m.now
	}
	return p.reclaimAfter.Add(-p.pool.limits.TTL)
}

// idle says whether nobody uses a pod or is about to.
func (m *Machine) idle(p *pod) bool {
	return p.active == 0 && len(p.pool.queue) == 0 && !m.usedElsewhere(p)
}

// usedElsewhere says whether another replica uses a pod: it would put off the pod's
// end each tenth of its time to live.
func (m *Machine) usedElsewhere(p *pod) bool {
	ttl := p.pool.limits.TTL
	return m.now.Sub(p.elsewhere.Add(-ttl)) < ttl/10+newsDelay
}
