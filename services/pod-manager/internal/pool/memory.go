package pool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// maxStarved is how many pods in a row may run out of memory under an evaluation
	// before its caller is told: the first time somebody else's may have taken it.
	maxStarved = 2
	// verdictPatience is how long a lease waits for word of why its caller's pods broke:
	// for as long as it may take to check one. The kubelet takes a second.
	verdictPatience = 2 * checkPatience
)

// distinct leaves out names that come again: a pod that broke twice is one pod.
func distinct(names []string) []string {
	var first []string
	for _, name := range names {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// verdict says whether the pods that a lease's caller lost all ran out of memory.
type verdict int

const (
	unsuspected verdict = iota // they did not, or that will never be known
	awaited                    // the kubelet has not said it of all yet, and still may
	starved
)

// verdict says whether a lease's caller may have a further pod. A caller hears of the
// end of a pod before the kubelet says why.
func (m *Machine) verdict(l *lease) verdict {
	if len(l.avoid) < maxStarved {
		return unsuspected
	}
	found := starved
	for _, name := range l.avoid {
		pod := m.byName[name]
		switch {
		case m.ranOutOfMemory(name):
		case pod != nil && pod.mayBeExplained() && m.now.Sub(l.requested) < verdictPatience:
			found = awaited
		default:
			return unsuspected
		}
	}
	return found
}

// mayBeExplained says whether the kubelet may yet say why a pod broke: while it is checked,
// and until it is gone, since a busy node takes longer than a check does.
func (p *pod) mayBeExplained() bool {
	return p.state == checking || !p.state.usable() && p.ending.unexplained
}

func (m *Machine) ranOutOfMemory(pod string) bool {
	_, ran := m.starved[pod]
	return ran
}

// inquire checks the pods that a lease's caller lost and that seem to serve, if another
// one that it lost is suspected already: a request may come before the end of the
// caller's last lease, and before the kubelet's word.
func (m *Machine) inquire(l *lease) {
	if len(l.avoid) < maxStarved {
		return
	}
	var serving []*pod
	for _, name := range l.avoid {
		pod := m.byName[name]
		switch {
		case m.ranOutOfMemory(name), pod != nil && pod.state == checking:
		case pod != nil && pod.state == ready:
			serving = append(serving, pod)
		default:
			return
		}
	}
	if len(serving) == len(l.avoid) {
		return
	}
	for _, pod := range serving {
		m.check(pod)
	}
}

// refuseStarved refuses those whose pods all ran out of memory. A further pod most likely
// would too, and take along what others run on it.
func (m *Machine) refuseStarved(p *pool) {
	if len(m.starved) == 0 {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if m.verdict(l) != starved {
			continue
		}
		m.reject(l, fault.Precondition, fmt.Sprintf(
			"out of memory: the kernel ended pods %s while they ran this evaluation: give the function a larger memory limit, or make the package smaller",
			strings.Join(l.avoid, " and ")), 0)
	}
}
