package pool

import "slices"

// trim drops pods beyond the limit: limits may have been lowered, or two replicas may
// have created pods at a time. Idle ones go first; those in use finish what they have
// if there are enough others that serve.
func (m *Machine) trim(p *pool) {
	m.trimTo(p, func(pod *pod) bool { return pod.state.usable() }, func(pod *pod) bool { return pod.active == 0 })
	m.trimTo(p, func(pod *pod) bool { return pod.state == ready }, func(*pod) bool { return true })
}

// trimTo drops ready pods that suit until no more than the limit count: those of older
// versions first, and then those in the highest slots.
func (m *Machine) trimTo(p *pool, counts, suits func(*pod) bool) {
	var old, rest []*pod
	for _, pod := range slices.Backward(p.pods) {
		switch {
		case !counts(pod), m.othersBusiness(pod):
		case m.outdated(pod):
			old = append(old, pod)
		default:
			rest = append(rest, pod)
		}
	}
	count := len(old) + len(rest)
	for i, pod := range append(old, rest...) {
		if count <= p.limits.MaxPods || pod.state != ready || !suits(pod) {
			continue
		}
		why := ending{reason: "the function has more pods than it may have", eviction: "surplus"}
		if i < len(old) {
			why = outOfDate()
		}
		m.drain(pod, why)
		count--
	}
}

// othersBusiness says whether a pod is of another version, and used by the replica that
// made it: that one may have ended one of this version in its place, which is still there.
func (m *Machine) othersBusiness(p *pod) bool {
	return m.otherVersion(p) && !m.outdated(p) && m.usedElsewhere(p)
}

// separate drops the younger one of two pods with the same id: they share a Service, so
// what is meant for one may reach the other. Replicas that did not know of each other
// make such twins, and agree on which one goes.
func (m *Machine) separate() {
	oldest := make(map[string]*pod, len(m.byName))
	for _, p := range m.pools {
		for _, pod := range p.pods {
			first, taken := oldest[pod.id]
			switch {
			case !pod.serves():
			case !taken:
				oldest[pod.id] = pod
			case pod.older(first):
				oldest[pod.id] = pod
				m.dropTwin(first, pod)
			default:
				m.dropTwin(pod, first)
			}
		}
	}
}

func (m *Machine) dropTwin(p, first *pod) {
	m.drain(p, ending{reason: "it shares its id, and so its Service, with the older pod " + first.name, eviction: "surplus"})
}

// serves says whether a pod is known to be there, and takes leases or will.
func (p *pod) serves() bool { return p.state.usable() && p.uid != "" }

// older says whether Kubernetes has had p for longer than other.
func (p *pod) older(other *pod) bool {
	if !p.seen.Created.Equal(other.seen.Created) {
		return p.seen.Created.Before(other.seen.Created)
	}
	return p.name < other.name
}
