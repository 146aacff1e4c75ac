// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// silenceTimeout is the delay between the report that a pod does not answer (after 2 s) and the removal of the pod. It
	// is also the minimum time between two tests of the network.
	silenceTimeout = 3 * time.Second
	// sampleInterval is the interval at which a few ready pods are probed to test the network while all pods answer.
	sampleInterval = 5 * time.Second
	// minSilentPods is the minimum number of unresponsive pods at which the network counts as broken. A single answer of
	// another pod proves that the network works.
	minSilentPods = 2
	// sampleSize is the maximum number of ready pods that are probed together to test the network. They run on
	// different nodes, to distinguish the loss of a node from the loss of the network.
	sampleSize = 3
)

// connectivity tracks whether this replica can reach function pods. A pod is silent if it does not answer probes
// although Kubernetes reports it as ready. Either the pod or the network to the pod is then broken.
type connectivity struct {
	// silent maps the name of each unresponsive pod to the moment when its silence was detected.
	silent     map[string]moment
	lastAnswer uint64    // number of the last event that reported an answer of a pod
	sampledAt  time.Time // time of the last sample
	lost       string    // reason that this replica counts as disconnected, or empty
}

func (e Unanswered) applyTo(m *Machine, s *step) {
	p, ok := m.pods.byName[e.Name]
	if ok && p.uid == e.UID && p.health.probedAddress != "" && p.health.probeNumber == e.Question {
		m.recordSilence(s, p)
	}
}

// recordSilence records that a pod does not answer probes, and probes other pods to test the network.
func (m *Machine) recordSilence(s *step, p *pod) {
	if _, known := m.connectivity.silent[p.name]; known || !p.observed.Ready {
		return // the pod may not have started yet
	}
	m.connectivity.silent[p.name] = s.moment
	m.sampleServing(s)
}

// sampleServing probes up to 3 (sampleSize) ready pods on different nodes. An answer proves that the network works.
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

// drainSilent drains a pod that does not answer a probe. If Kubernetes reports the pod as ready, the cause may be this
// replica's own network. The pod is then probed again, and becomes ready again if it answers.
func (m *Machine) drainSilent(s *step, p *pod, reason string) {
	p.pool.drainFailed(s, p, Problem{Kind: Lost, Reason: reason})
	p.removal.unexplained = true
	if p.observed.Ready {
		p.removal.silentSince = s.moment
		m.recordSilence(s, p)
		p.probe(s, 0)
	}
}

// judgeConnectivity drains pods that do not answer probes, and detects that this replica is disconnected from all
// pods. It runs every second.
func (m *Machine) judgeConnectivity(s *step) {
	c := &m.connectivity
	if m.ownership.replicas > 1 && s.age(c.sampledAt) >= sampleInterval {
		m.sampleServing(s) // detects a lost network early, because another replica can take over
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
			unheard++ // a disconnected replica counts as connected again only after an answer
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

// setLost marks this replica as disconnected if unheard is at least 2 (minSilentPods), else as connected. unheard is
// the number of pods that became silent after the last answer of any pod. A change of the mark emits [StandDown].
func (m *Machine) setLost(s *step, unheard int) {
	former, lost := m.connectivity.lost, ""
	if unheard >= minSilentPods {
		lost = cmp.Or(former, fmt.Sprintf(
			"%d function pods that Kubernetes reports as ready do not answer it, and none does", unheard))
	}
	if lost != former {
		m.connectivity.lost = lost
		s.emit(StandDown{Reason: lost})
	}
}

// confirmsSilence reports whether a draining pod may be deleted. If the pod does not answer, the cause may be this
// replica's own network instead of the pod. The deletion then waits until Kubernetes no longer reports the pod as
// ready, or until another pod has answered and 3 s (silenceTimeout) have passed. In these 3 s, the pod may answer too,
// because pods answer one after another when a network recovers.
func (m *Machine) confirmsSilence(s *step, p *pod) bool {
	r := &p.removal
	switch {
	case r.silentSince.event == 0 || !p.observed.Ready:
		return true
	case m.connectivity.lastAnswer < r.silentSince.event:
		return false
	case r.confirmedAt.IsZero():
		r.confirmedAt = s.at
	}
	return s.age(r.confirmedAt) >= silenceTimeout
}

// reviveSilent makes a pod ready again if it was drained because it did not answer, and now answers a probe.
func (p *pod) reviveSilent(s *step) {
	if p.state == draining && p.removal.silentSince.event != 0 {
		p.removal = removal{}
		p.markReady(s)
	}
}
