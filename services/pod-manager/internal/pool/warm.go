package pool

import (
	"slices"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

func (e WarmUp) apply(m *Machine) {
	p := m.pool(e.Function)
	p.warm = !slices.ContainsFunc(p.pods, (*pod).served)
	m.touch(p)
}

func (e WarmUpEnded) apply(m *Machine) {
	if p, ok := m.byFunction[e.Function]; ok {
		p.warm = false
		m.touch(p)
	}
}

// served says whether a pod has been ready, and takes leases or may again.
func (p *pod) served() bool { return p.state == ready || p.state == checking }

// Warming says whether a warm-up is still going on, and otherwise why there is no pod; nil
// if there is one.
func (m *Machine) Warming(f Function) (pending bool, failure error) {
	p, ok := m.byFunction[f]
	if !ok {
		return false, nil
	}
	if problem := p.failure.problem; !p.warm && problem.Kind != None && !slices.ContainsFunc(p.pods, (*pod).served) {
		failure = fault.New(problem.Kind.class(), "%s", problem.Reason)
	}
	return p.warm, failure
}
