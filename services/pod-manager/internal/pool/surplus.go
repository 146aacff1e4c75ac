package pool

// trim drops pods beyond the limit: limits may have been lowered, or two replicas may
// have created pods at a time. Idle ones go first; those in use finish what they have
// if there are enough others that serve.
func (m *Machine) trim(p *pool) {
	m.trimTo(p, p.usable(), func(pod *pod) bool { return pod.active == 0 })
	serving := 0
	for _, pod := range p.pods {
		if pod.state == ready {
			serving++
		}
	}
	m.trimTo(p, serving, func(*pod) bool { return true })
}

// trimTo drops ready pods, those in the highest slots first, until count is within
// the limit.
func (m *Machine) trimTo(p *pool, count int, suits func(*pod) bool) {
	for i := len(p.pods) - 1; i >= 0 && count > p.limits.MaxPods; i-- {
		if pod := p.pods[i]; pod.state == ready && suits(pod) {
			m.drain(pod, ending{reason: "the function has more pods than it may have", eviction: "surplus"})
			count--
		}
	}
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
