package pool

import (
	"fmt"
	"strconv"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

func (e PodObserved) apply(m *Machine) {
	o := e.Observation
	if _, over := m.ended[o.UID]; over {
		return
	}
	p, known := m.byName[o.Name]
	if known && p.knowsMore(o) {
		return
	}
	another := known && p.uid != "" && p.uid != o.UID
	if another && o.Created.Before(p.seen.Created) {
		return // late news of the one that had the name before
	}
	if another {
		m.remove(p) // its name is another pod's now
		known = false
	}
	if !known {
		p = &pod{
			pool: m.pool(o.Function), slot: o.Slot, name: o.Name, state: starting,
			adopted: true, foundRunning: running(o), created: o.Created, pendingSince: m.now,
		}
		m.add(p)
	}
	if p.uid == "" {
		p.writtenReclaim = o.ReclaimAfter // which is another replica's if that made it
	}
	p.uid = o.UID
	if p.state == creating {
		p.state = starting
	}
	m.see(p, o)
	p.hoped = p.hoped || p.state.usable()
	m.touch(p.pool)
}

// knowsMore says whether an observation is older than the last one of the same pod,
// as far as versions tell: those of Kubernetes are numbers that grow. An address that
// is missing from the same version was only not known yet.
func (p *pod) knowsMore(o Observation) bool {
	if p.uid != o.UID {
		return false
	}
	last, errLast := strconv.ParseUint(p.seen.ResourceVersion, 10, 64)
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if errLast != nil || err != nil {
		return false
	}
	return version < last || version == last && o.Address == "" && p.seen.Address != ""
}

// see takes over what Kubernetes says about a pod.
func (m *Machine) see(p *pod, o Observation) {
	o.Deleting = o.Deleting || p.seen.Deleting // an end that has begun stays
	before := p.seen
	p.seen = o
	if o.Problem.OutOfMemory {
		m.starved[p.name] = m.now
	}
	if o.ReclaimAfter.After(p.writtenReclaim) {
		p.writtenReclaim = o.ReclaimAfter
	}
	if o.ReclaimAfter.After(p.reclaimAfter) { // another replica may have used it
		p.reclaimAfter, p.elsewhere = o.ReclaimAfter, o.ReclaimAfter
	}
	if p.reclaimAfter.IsZero() {
		p.reclaimAfter = m.now.Add(p.pool.limits.TTL) // written down by the next scan
	}
	if o.Problem.Kind.broken() && p.ending.unexplained {
		p.ending.reason, p.ending.unexplained = o.Problem.Reason, false
	}
	switch {
	case !o.Problem.Kind.open():
		p.stuck, p.stuckSince = false, time.Time{}
	case p.stuckSince.IsZero():
		p.stuckSince = m.now
	}
	switch {
	case o.Deleting:
		m.loseToOthers(p)
	case !p.state.usable():
		p.ending.unsound = p.ending.unsound || o.Problem.Kind.broken()
	case o.Problem.Kind.broken():
		m.fail(p, o.Problem)
	case p.stopped(before):
		p.state, p.pendingSince, p.probing, p.ran = starting, m.now, "", false
	case p.state == starting && o.Address != "":
		// Kubernetes says only later that its containers run.
		m.probe(p, 0)
	}
	p.ran = p.ran || running(o)
}

// stopped says whether the containers of a pod do not run any more. That Kubernetes
// has not said yet that they run means nothing: a probe may have found out before.
func (p *pod) stopped(before Observation) bool {
	stuck := p.state == ready && p.seen.Problem.Kind.open()
	lostAddress := before.Address != "" && p.seen.Address == ""
	return !running(p.seen) && (p.ran || stuck || lostAddress)
}

// loseToOthers takes note that Kubernetes is ending a pod.
func (m *Machine) loseToOthers(p *pod) {
	if p.state.usable() {
		p.ending, p.endingAt = ending{reason: "somebody else deleted it"}, m.now
		m.disappoint(p, Problem{Kind: Lost, Reason: "pod " + p.name + " was deleted by somebody else before it was ready"})
	}
	p.state = deleting
}

// lookForDelays looks for pods that take too long.
func (m *Machine) lookForDelays(p *pool) {
	for i := len(p.pods) - 1; i >= 0; i-- { // one may go
		m.lookForDelay(p.pods[i])
	}
}

func (m *Machine) lookForDelay(p *pod) {
	if !p.stuckSince.IsZero() && !p.stuck && m.now.Sub(p.stuckSince) >= m.config.SchedulingPatience {
		p.stuck = true
		m.touch(p.pool)
	}
	pending := m.now.Sub(p.pendingSince)
	switch {
	case p.state == checking && pending >= 2*checkPatience:
		m.fail(p, Problem{Kind: Lost, Reason: "pod " + p.name + " was found broken, and nothing is known of its health since"})
	case p.state == creating && pending >= p.pool.limits.ReadyTimeout:
		// It may not be there, or be in use by another replica, which chose the same
		// name. If it is there it will be adopted.
		m.failed(p.pool, Problem{Kind: Fatal, Reason: fmt.Sprintf("pod %s was not there after %s: %s", p.name, p.pool.limits.ReadyTimeout, p.standstill())})
		m.remove(p)
	case p.state == starting && pending >= p.pool.limits.ReadyTimeout:
		m.fail(p, Problem{Kind: Fatal, Reason: fmt.Sprintf("pod %s was not ready after %s: %s", p.name, p.pool.limits.ReadyTimeout, p.standstill())})
	}
}

// standstill says what a pod that does not become ready was last seen doing.
func (p *pod) standstill() string {
	switch {
	case p.seen.Problem.Reason != "":
		return p.seen.Problem.Reason
	case p.seen.Reason != "":
		return p.seen.Reason
	case p.state == creating:
		return "Kubernetes has not confirmed it"
	case p.seen.Phase == podmanagerv1.Phase_PHASE_CONNECTING:
		return "its containers run, but the wrapper server does not answer"
	default:
		return "its containers do not run"
	}
}
