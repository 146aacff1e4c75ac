// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"time"
)

const (
	// silenceTimeout is how long a pod stays silent before that has consequences, and the minimum time between two
	// samples. The prober takes two seconds to report it.
	silenceTimeout = 3 * time.Second
	// sampleInterval is the time between two samples while no pod is silent.
	sampleInterval = 5 * time.Second
	// minSilentPods is the number of silent pods that shows that this replica has lost the pods' network, if none
	// answers.
	minSilentPods = 2
	// sampleSize is the number of serving pods that are probed while others are silent, so that the loss of a node is
	// not mistaken for the loss of the network.
	sampleSize = 3
)

// connectivity is whether this replica reaches function pods. A pod is silent if it does not answer although
// Kubernetes reports it as ready: either the pod is broken, or the network is.
type connectivity struct {
	// silent are the silent pods by name, with the time at which each was found.
	silent map[string]moment
	// lastAnswer is the event of the last answer of any pod, and confirmed the last probe that was answered.
	lastAnswer, lastAnsweredProbe uint64
	sampledAt                     time.Time // when pods were last probed only to learn whether one answers
	lost                          string    // why this replica counts as cut off; empty if it does not
}

func (e Unanswered) applyTo(m *Machine) {
	p, ok := m.pods.byName[e.Name]
	if ok && p.uid == e.UID && p.health.probedAddress != "" && p.health.probeNumber == e.Question {
		m.recordSilence(&m.step, p)
	}
}

// recordSilence records that a pod does not answer.
func (m *Machine) recordSilence(s *step, p *pod) {
	if _, known := m.connectivity.silent[p.name]; known || !p.observed.Ready {
		return // a pod that is not ready may just not have started
	}
	m.connectivity.silent[p.name] = s.moment
	m.sampleServing(s)
}

// sampleServing probes some serving pods, on different nodes, to learn whether any of them answers.
func (m *Machine) sampleServing(s *step) {
	if s.age(m.connectivity.sampledAt) < silenceTimeout {
		return
	}
	m.connectivity.sampledAt = s.at
	asked, nodes := 0, make(map[string]bool)
	for _, p := range m.pools {
		for _, pod := range p.pods {
			if asked == sampleSize {
				return
			}
			if pod.state != ready || pod.health.probedAddress != "" || nodes[pod.observed.Node] {
				continue
			}
			nodes[pod.observed.Node] = pod.observed.Node != ""
			pod.probe(s, 0)
			asked++
		}
	}
}

// drainSilent drains a pod that was found broken, and has not answered since. A pod that Kubernetes reports as ready
// is probed again: it may answer, or this replica may be cut off.
func (m *Machine) drainSilent(s *step, p *pod, reason string) {
	p.pool.drainFailed(s, p, Problem{Kind: Lost, Reason: reason})
	p.removal.unexplained = true
	if p.observed.Ready {
		p.removal.silentSince = s.moment
		m.recordSilence(s, p)
		p.probe(s, 0)
	}
}

// recordAnswer records that a pod answered a probe.
func (m *Machine) recordAnswer(p *pod) {
	m.connectivity.lastAnswer = m.step.event
	m.connectivity.lastAnsweredProbe = max(m.connectivity.lastAnsweredProbe, p.health.probeNumber)
	delete(m.connectivity.silent, p.name)
}

// judgeConnectivity drains silent pods, and finds out whether this replica is cut off. It does so with each tick.
func (m *Machine) judgeConnectivity(s *step) {
	c := &m.connectivity
	if m.ownership.replicas > 1 && s.age(c.sampledAt) >= sampleInterval {
		m.sampleServing(s) // another replica can take over
	}
	if len(c.silent) == 0 && c.lost == "" {
		return
	}
	unheard := 0
	for name, since := range c.silent {
		p := m.pods.byName[name]
		if p == nil || !p.observed.Ready || p.observed.Deleting {
			delete(c.silent, name)
			continue
		}
		silent := s.age(since.at) >= silenceTimeout
		if (silent || c.lost != "") && since.event > c.lastAnswer {
			unheard++ // a replica that is cut off needs a pod's answer, not a new pod, to count as connected
		}
		if silent && p.state.usable() && p.pool.isManaged() {
			reason := "pod " + name + " does not answer, although Kubernetes reports it as ready"
			p.pool.drainFailed(s, p, Problem{Kind: Lost, Reason: reason})
			p.removal.silentSince = since
		}
	}
	m.sampleServing(s)
	m.setLost(s, unheard)
}

// setLost decides whether this replica is cut off, and reports when that changes.
func (m *Machine) setLost(s *step, unheard int) {
	c := &m.connectivity
	was := c.lost
	switch {
	case unheard < minSilentPods:
		c.lost = ""
	case was == "":
		c.lost = fmt.Sprintf("%d function pods that Kubernetes reports as ready do not answer it, and none does", unheard)
	}
	if c.lost == was {
		return
	}
	s.emit(StandDown{Reason: c.lost})
	for _, p := range m.pools {
		s.markDirty(p)
	}
}

// confirmsSilence reports whether a pod may be deleted for its silence: another pod has answered a probe that was sent later
// and this one has not since, or Kubernetes no longer reports it as ready. When a network recovers, one pod is the
// first to answer.
func (m *Machine) confirmsSilence(s *step, p *pod) bool {
	r := &p.removal
	switch {
	case r.silentSince.event == 0 || !p.observed.Ready:
		return true
	case m.connectivity.lastAnsweredProbe < r.silentSince.event:
		return false
	case r.confirmedAt.IsZero():
		r.confirmedAt = s.at
	}
	return s.age(r.confirmedAt) >= silenceTimeout
}

// reviveSilent keeps a pod that was drained for its silence, and answers.
func (p *pod) reviveSilent(s *step) {
	if p.state == draining && p.removal.silentSince.event != 0 {
		p.removal = removal{}
		p.markReady(s)
	}
}
