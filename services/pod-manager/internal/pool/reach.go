// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"time"
)

const (
	// silentFor is how long a pod stays silent before that has consequences, and the time
	// between two samples. The prober takes two seconds to report it.
	silentFor = 3 * time.Second
	// sampleInterval is the time between two samples while no pod is silent.
	sampleInterval = 5 * time.Second
	// silentPods is how many silent pods show that this replica has lost the pods' network,
	// if none answers.
	silentPods = 2
	// sampleSize is how many pods that serve are probed while others are silent, so that the
	// loss of a node is not taken for that of the network.
	sampleSize = 3
)

// reach is whether this replica reaches function pods. A pod is silent if it does not answer
// although Kubernetes reports it as ready: either it is broken, or the way to it is.
type reach struct {
	// silent are the silent pods, with when that was found, by name.
	silent map[string]moment
	// heard is the event by which a pod last answered, and confirmed the last probe that was
	// answered.
	heard, confirmed uint64
	sampled          time.Time // when pods were last probed only to know whether one answers
	lost             string    // why this replica counts as cut off; empty if it does not
}

func (e Unanswered) apply(m *Machine) {
	p, ok := m.pods.byName[e.Name]
	if ok && p.uid == e.UID && p.health.asked != "" && p.health.question == e.Question {
		m.silence(&m.step, p)
	}
}

// silence records that a pod does not answer.
func (m *Machine) silence(s *step, p *pod) {
	if _, known := m.reach.silent[p.name]; known || !p.seen.Ready {
		return // or it may just not have started
	}
	m.reach.silent[p.name] = s.moment
	m.sample(s)
}

// sample probes some pods that serve, of different nodes: does any of them answer?
func (m *Machine) sample(s *step) {
	if s.age(m.reach.sampled) < silentFor {
		return
	}
	m.reach.sampled = s.at
	asked, nodes := 0, make(map[string]bool)
	for _, p := range m.pools {
		for _, pod := range p.pods {
			if asked == sampleSize {
				return
			}
			if pod.state != ready || pod.health.asked != "" || nodes[pod.seen.Node] {
				continue
			}
			nodes[pod.seen.Node] = pod.seen.Node != ""
			pod.probe(s, 0)
			asked++
		}
	}
}

// drainSilent drains a pod that was found broken, and has not answered since. If Kubernetes
// reports it as ready it is asked again: it may answer, or this replica may be cut off.
func (m *Machine) drainSilent(s *step, p *pod, reason string) {
	p.pool.drainFailed(s, p, Problem{Kind: Lost, Reason: reason})
	p.removal.unexplained = true
	if p.seen.Ready {
		p.removal.silent = s.moment
		m.silence(s, p)
		p.probe(s, 0)
	}
}

// hear records that a pod answered a probe.
func (m *Machine) hear(p *pod) {
	m.reach.heard = m.step.event
	m.reach.confirmed = max(m.reach.confirmed, p.health.question)
	delete(m.reach.silent, p.name)
}

// judgeReach drains silent pods, and finds out whether this replica is cut off. It does so with
// each tick.
func (m *Machine) judgeReach(s *step) {
	if m.owners.replicas > 1 && s.age(m.reach.sampled) >= sampleInterval {
		m.sample(s) // another replica can take over
	}
	if len(m.reach.silent) == 0 && m.reach.lost == "" {
		return
	}
	unheard := 0
	for name, since := range m.reach.silent {
		p := m.pods.byName[name]
		if p == nil || !p.seen.Ready || p.seen.Deleting {
			delete(m.reach.silent, name)
			continue
		}
		silent := s.age(since.at) >= silentFor
		if (silent || m.reach.lost != "") && since.event > m.reach.heard {
			unheard++ // one that is cut off needs a pod's answer, not a new pod, to count as reachable
		}
		if silent && p.state.usable() && p.pool.tends() {
			reason := "pod " + name + " does not answer, although Kubernetes reports it as ready"
			p.pool.drainFailed(s, p, Problem{Kind: Lost, Reason: reason})
			p.removal.silent = since
		}
	}
	m.sample(s)
	m.setLost(s, unheard)
}

// setLost decides whether this replica is cut off, and reports when that changes.
func (m *Machine) setLost(s *step, unheard int) {
	was := m.reach.lost
	switch {
	case unheard < silentPods:
		m.reach.lost = ""
	case was == "":
		m.reach.lost = fmt.Sprintf(
			"%d function pods that Kubernetes reports as ready do not answer it, and none does", unheard)
	}
	if m.reach.lost == was {
		return
	}
	s.emit(StandDown{Reason: m.reach.lost})
	for _, p := range m.pools {
		s.mark(p)
	}
}

// confirms reports whether a pod may be deleted for its silence: another pod has answered a
// probe that was sent later, and this one has not since, or Kubernetes does not report it as
// ready any more. When a network is back, one pod is the first to answer.
func (m *Machine) confirms(s *step, p *pod) bool {
	r := &p.removal
	switch {
	case r.silent.event == 0 || !p.seen.Ready:
		return true
	case m.reach.confirmed < r.silent.event:
		return false
	case r.confirmed.IsZero():
		r.confirmed = s.at
	}
	return s.age(r.confirmed) >= silentFor
}

// revive keeps a pod that was drained for its silence, and answers.
func (p *pod) revive(s *step) {
	if p.state == draining && p.removal.silent.event != 0 {
		p.removal = removal{}
		p.markReady(s)
	}
}
