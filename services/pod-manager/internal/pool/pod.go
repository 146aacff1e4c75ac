package pool

import (
	"cmp"
	"slices"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// state is where a pod is in its life.
type state int

const (
	creating state = iota // asked for, not yet seen
	starting              // on its way to readiness
	ready                 // takes leases
	checking              // was found broken, and is asked for its health
	draining              // takes no leases, and is deleted once it has none
	deleting              // its deletion is under way
)

// usable says whether a pod takes leases or will.
func (s state) usable() bool { return s <= checking }

// pod is one function pod.
type pod struct {
	pool      *pool
	slot      int
	id        string // by which its Service finds it
	name, uid string
	seen      Observation
	state     state
	adopted   bool
	// hoped says that those who wait may have hoped for it: all but those that were
	// found ended.
	hoped bool

	active      int // leases that it holds
	leasesTotal int64
	turn        uint64 // when it was chosen last, in grants
	strikes     int    // leases in a row that found it broken
	suspected   bool   // is checked before any lease has reported that it broke

	created        time.Time // by Kubernetes' clock, once it is known there
	known          time.Time // since when it is known here
	knownEvent     uint64    // the event by which it is
	pendingSince   time.Time // when it began to be creating, starting or checking
	readySince     time.Time // zero until it was ready once
	readyEvent     uint64    // the event by which it was
	healthyEvent   uint64    // the last event by which it said that it is well
	foundRunning   bool      // its containers ran already when it was adopted
	reclaimAfter   time.Time // when it may be collected
	writtenReclaim time.Time // what its annotation says, or soon will
	elsewhere      time.Time // the last end that another replica gave it; zero if none did
	extended       time.Time // when that was last asked for

	ran        bool   // Kubernetes said that its containers run
	probing    string // the address that is being asked for its health
	question   uint64 // the last time it was asked
	stuck      bool   // has had its Problem for longer than there is patience
	stuckSince time.Time

	ending     ending
	endingAt   time.Time // since when it is to go
	retryAfter time.Time // when to ask again for its deletion
}

// evictionTTL is the kind of eviction that another replica's use of the pod undoes.
const evictionTTL = "ttl"

// ending is why a pod goes.
type ending struct {
	reason   string
	eviction string // the kind of reason, for metrics
	// idle says that the pod was chosen since nobody used it, as evictionTTL does:
	// another replica's use undoes it.
	idle bool
	// unsound says that the pod does not serve: it goes whatever became of it since.
	unsound bool
	// unexplained says that it stopped to answer, and that the kubelet has not said why.
	unexplained bool
}

// add puts a pod into its pool.
func (m *Machine) add(p *pod) {
	p.id = m.config.PodID(p.pool.function, p.slot)
	p.known, p.knownEvent = m.now, m.events
	m.byName[p.name] = p
	p.pool.pods = append(p.pool.pods, p)
	slices.SortStableFunc(p.pool.pods, func(a, b *pod) int { return cmp.Compare(a.slot, b.slot) })
}

// remove takes a pod that is gone out of its pool.
func (m *Machine) remove(p *pod) {
	delete(m.byName, p.name)
	p.pool.pods = slices.DeleteFunc(p.pool.pods, func(other *pod) bool { return other == p })
	if p.uid != "" {
		p.pool.predecessors[p.slot] = p.uid
		m.ended[p.uid] = m.now
	}
	p.state = deleting // for those who still hold a lease on it
	p.pool.emptySince = m.now
	m.touch(p.pool)
}

func (e ForeignObserved) apply(m *Machine) { m.foreign[e.Name] = e.ID }

func (e PodGone) apply(m *Machine) {
	delete(m.foreign, e.Name)
	p, ok := m.byName[e.Name]
	if !ok || p.uid != "" && p.uid != e.UID {
		if e.UID != "" {
			m.ended[e.UID] = m.now
		}
		return
	}
	p.uid = e.UID // if it came and went unseen, its successor needs another name all the same
	if p.state.usable() {
		m.disappoint(p, Problem{Kind: Lost, Reason: "pod " + p.name + " was deleted by somebody else before it was ready"})
	}
	m.remove(p)
}

func (e CreateFailed) apply(m *Machine) {
	p, ok := m.byName[e.Name]
	if !ok || p.state != creating {
		return
	}
	m.failed(p.pool, e.Problem)
	m.remove(p)
}

func (e DeleteFailed) apply(m *Machine) {
	p, ok := m.byName[e.Name]
	if !ok || p.uid != e.UID || p.state != deleting || p.seen.Deleting {
		return
	}
	p.state = draining
	p.retryAfter = m.now.Add(deleteRetry)
	m.touch(p.pool)
}

func (e Probed) apply(m *Machine) {
	p, ok := m.byName[e.Name]
	if !ok || p.uid != e.UID || p.probing == "" || p.question != e.Question {
		return
	}
	p.probing = ""
	m.touch(p.pool)
	if p.state != starting && p.state != checking {
		return
	}
	if e.Unhealthy != "" {
		m.fail(p, Problem{Kind: Lost, Reason: "pod " + p.name + " does not answer: " + e.Unhealthy})
		p.ending.unexplained = true
		return
	}
	if p.readySince.IsZero() {
		p.readySince, p.readyEvent = m.now, m.events
		if !p.adopted {
			m.keep(p) // an adopted one has its end, written down by who made it
		}
	}
	p.state, p.healthyEvent = ready, m.events
	p.pool.failure.over()
}

// probe asks a pod for its health.
func (m *Machine) probe(p *pod, patience time.Duration) {
	address := cmp.Or(p.seen.HealthAddress, p.seen.Address)
	if p.probing == address {
		return
	}
	p.probing, p.question = address, m.events
	m.act(Probe{Name: p.name, UID: p.uid, Address: address, Question: p.question, Patience: patience})
}

const (
	// maxStrikes is how many leases in a row may find a pod broken that says it is
	// healthy.
	maxStrikes = 3
	// checkPatience is how long a pod that was found broken may take to answer.
	checkPatience = 3 * time.Second
)

// doubt checks a pod that was found broken, before it serves again.
func (m *Machine) doubt(p *pod, reason string) {
	if p.state != ready && (p.state != checking || !p.suspected) {
		return // it is being checked already, or goes
	}
	p.suspected = false
	if p.strikes++; p.strikes >= maxStrikes {
		m.fail(p, Problem{Kind: Lost, Reason: "pod " + p.name + " is broken: " + reason})
		return
	}
	if p.state == ready {
		m.check(p)
	}
}

// suspect checks a pod whose caller asks for another one: requests are often faster than
// reports.
func (m *Machine) suspect(p *pod) {
	m.check(p)
	p.suspected = true
}

// check asks a pod that served for its health. Until it answers it takes no leases.
func (m *Machine) check(p *pod) {
	p.state, p.pendingSince, p.suspected = checking, m.now, false
	m.probe(p, checkPatience)
}

// fail has a pod go that cannot serve.
func (m *Machine) fail(p *pod, problem Problem) {
	m.disappoint(p, problem)
	m.drain(p, ending{reason: problem.Reason, eviction: "failed", unsound: true})
}

// disappoint takes note that a pod serves no more. That is a failed attempt to have
// one unless it did serve, and another one like it would too.
//
// Those that were lost together are one attempt: none of them was made knowing of the
// others.
func (m *Machine) disappoint(p *pod, problem Problem) {
	if !p.hoped || problem.Kind == Lost && (!p.readySince.IsZero() || p.known.Before(p.pool.failure.at)) {
		return
	}
	m.failed(p.pool, problem)
}

// drain lets a pod finish what it has, and go.
func (m *Machine) drain(p *pod, why ending) {
	if p.state.usable() {
		p.state, p.ending, p.endingAt = draining, why, m.now
	}
	m.touch(p.pool)
}

const (
	// deleteRetry is when to decide again about a pod that could not be deleted.
	deleteRetry = time.Second
	// deletePatience is when to ask again for the deletion of a pod of which nothing
	// was heard since.
	deletePatience = 2 * time.Minute
)

// release deletes the pods that are to go and hold no lease.
func (m *Machine) release(p *pool) {
	for _, pod := range p.pods {
		if pod.state.usable() || pod.active > 0 || m.now.Before(pod.retryAfter) {
			continue
		}
		first := pod.retryAfter.IsZero()
		pod.retryAfter = m.now.Add(deletePatience)
		switch {
		case pod.seen.Deleting && first: // somebody else asked for it
		case !pod.seen.Deleting && !pod.ending.unsound && m.undone(pod):
			m.spare(pod)
		default:
			m.delete(p, pod)
		}
	}
}

// undone says whether a pod was to go since nobody used it, and another replica did.
func (m *Machine) undone(p *pod) bool {
	return p.ending.eviction == evictionTTL && m.now.Before(p.reclaimAfter) || p.ending.idle && m.usedElsewhere(p)
}

// spare keeps a pod that another replica used after it was to go.
func (m *Machine) spare(p *pod) {
	if p.pool.usable() >= p.pool.limits.MaxPods {
		p.ending = ending{reason: "the function has a pod in its place", eviction: "surplus"}
		m.delete(p.pool, p)
		return
	}
	p.state, p.ending, p.retryAfter, p.pendingSince = starting, ending{}, time.Time{}, m.now
	if p.seen.Address != "" {
		m.probe(p, 0)
	}
	m.touch(p.pool)
}

// delete asks for the deletion of a pod.
func (m *Machine) delete(p *pool, pod *pod) {
	pod.state = deleting
	del := Delete{Name: pod.name, UID: pod.uid, Function: p.function, Slot: pod.slot, Reason: pod.ending.reason, Eviction: pod.ending.eviction}
	if !pod.ending.unsound && !pod.seen.Deleting {
		del.ResourceVersion = pod.seen.ResourceVersion
	}
	m.act(del)
}

// running says whether the containers of a pod run.
func running(o Observation) bool {
	return o.Phase == podmanagerv1.Phase_PHASE_CONNECTING && o.Address != ""
}

// busy says whether anything in a pool waits for time to pass.
func (p *pool) busy() bool {
	return p.usable() < p.minPods || slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.state != ready })
}

// phase is the step that a pod is at on its way to readiness.
func (p *pod) phase() podmanagerv1.Phase {
	if p.state == creating {
		return podmanagerv1.Phase_PHASE_CREATING
	}
	return p.seen.Phase
}
