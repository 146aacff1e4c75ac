// Package pool decides which function pods there are and who may use them.
//
// It is a state machine: events go in, actions come out. It does no I/O, has no
// clock of its own, starts nothing and knows no Kubernetes client, so whatever can
// happen to pods can be played through in a test, a day in a second. Whoever owns a
// [Machine] calls it from one goroutine, carries out the actions in the order given,
// and tells it what became of them.
package pool

import "time"

// Function identifies a pool: its pods run this image.
type Function struct {
	// Reference is the canonical image name with tag, without digest.
	Reference string
	// Digest is what the tag meant when the lease was asked for. A tag that moves
	// leads to a new pool; the old one's pods end with their time to live.
	Digest string
}

// Limits are the settings of one function's pool. Zero pods, waitlist or concurrency
// count as one.
type Limits struct {
	// MaxPods is how many pods the pool may have. Pods that only finish what they
	// have before they go are not counted: a successor does not wait for them.
	MaxPods int
	// MaxWaitlistLength is how many leases, granted or waiting, there may be for
	// each pod before a further pod is started.
	MaxWaitlistLength int
	// MaxConcurrency is how many leases one pod may hold at once.
	MaxConcurrency int
	// MaxQueue is how many leases may wait.
	MaxQueue int
	// TTL is how long an unused pod lives: five seconds at least, since replicas have
	// to tell each other that a pod is in use before it ends.
	TTL time.Duration
	// ReadyTimeout is how long a pod may take to become ready.
	ReadyTimeout time.Duration
	// Settings is the version of what shapes new pods beside the template.
	Settings string
}

// Config is the settings of all pools.
type Config struct {
	// Limits returns the limits of a function. It must be pure.
	Limits func(Function) Limits
	// MaxPods is how many pods there may be in all pools, those on their way out
	// included; 0 means any number.
	MaxPods int
	// MaxWaiting is how many leases may wait in all pools. Beyond it the last one in
	// the longest queue gives way.
	MaxWaiting int
	// ScanInterval is the time between two searches for pods to collect.
	ScanInterval time.Duration
	// SchedulingPatience is how long a pod may be unschedulable before those who
	// wait for it are told so.
	SchedulingPatience time.Duration
	// Template is the version of the pod template for new pods; empty while it is not
	// known, which makes no pod an old one.
	Template string
	// PodName names the pod in a slot that follows the one with the UID predecessor.
	// It must be pure: replicas that fill the same slot choose the same name. Each
	// function and slot must have names of their own.
	PodName func(f Function, slot int, predecessor string) string
	// PodID returns the id of the pod in a slot, by which its Service finds it. It
	// must be pure. Slots of different functions may have the same one.
	PodID func(f Function, slot int) string
}

// limits returns the limits of a function. There is one of everything at least: none
// would have callers wait for ever. No end comes before all replicas know of it.
func (c Config) limits(f Function) Limits {
	l := c.Limits(f)
	l.MaxPods, l.MaxWaitlistLength, l.MaxConcurrency = max(l.MaxPods, 1), max(l.MaxWaitlistLength, 1), max(l.MaxConcurrency, 1)
	l.TTL = max(l.TTL, newsDelay)
	return l
}

// pool is the pods of one function and the leases that wait for them.
type pool struct {
	function Function
	limits   Limits
	pods     []*pod   // by slot
	queue    []*lease // first come, first served
	// minPods is how many pods the pool keeps although no lease needs them.
	minPods int
	failure failure
	// since is when the version came into force that new pods are of.
	since change
	// predecessors are the UIDs of the last pods that are gone, by slot.
	predecessors map[int]string
	// needySince is since when it has been in line for a pod without having any; zero
	// if it is not.
	needySince time.Time
	// repeatReports says that positions in the queue are to be reported too.
	repeatReports bool

	leasesTotal, coldStartsTotal int64
	emptySince                   time.Time // when its last pod went
}

// usable counts the pods that take leases or will.
func (p *pool) usable() int {
	n := 0
	for _, pod := range p.pods {
		if pod.state.usable() {
			n++
		}
	}
	return n
}

// active counts the granted leases.
func (p *pool) active() int {
	n := 0
	for _, pod := range p.pods {
		n += pod.active
	}
	return n
}

// demand counts the leases that usable pods hold and that wait.
func (p *pool) demand() int {
	demand := len(p.queue)
	for _, pod := range p.pods {
		if pod.state.usable() {
			demand += pod.active
		}
	}
	return demand
}

// wanted is how many usable pods the pool should have for those who use it and who
// wait. Pods in no need are not ended by it: their time to live does that.
func (p *pool) wanted() int {
	wanted := (p.demand() + p.limits.MaxWaitlistLength - 1) / p.limits.MaxWaitlistLength
	return min(max(wanted, p.minPods), p.limits.MaxPods)
}

func (e MinPodsSet) apply(m *Machine) {
	if e.Pods <= 0 && m.byFunction[e.Function] == nil {
		return
	}
	p := m.pool(e.Function)
	p.minPods = e.Pods
	m.touch(p)
}

// keeps reports whether a pod is one of the minimum: the first ones that are up to date,
// by slot.
func (m *Machine) keeps(p *pod) bool {
	n := 0
	for _, other := range p.pool.pods {
		if !other.state.usable() || m.outdated(other) {
			continue
		}
		if n++; n > p.pool.minPods {
			return false
		}
		if other == p {
			return true
		}
	}
	return false
}

// freeSlot returns the lowest slot whose id no pod has, be it of another function or
// function runner, and pods on their way out included: their names and Services are still
// taken. A pod that was found may have the name for a slot and say that it is in another
// one.
func (m *Machine) freeSlot(p *pool) (slot int, name string) {
	taken := make(map[string]bool, len(m.byName))
	for _, pod := range m.byName {
		taken[pod.id] = true
	}
	for _, id := range m.foreign {
		taken[id] = true
	}
	for slot = 1; ; slot++ {
		name = m.config.PodName(p.function, slot, p.predecessors[slot])
		if m.byName[name] == nil && !taken[m.config.PodID(p.function, slot)] {
			return slot, name
		}
	}
}

// choose returns the pod for a lease: the least loaded of those with room, the one
// used longest ago among equals, and one to be avoided only if there is no other.
func (p *pool) choose(l *lease) *pod {
	var best *pod
	for _, candidate := range p.pods {
		if candidate.state != ready || candidate.active >= p.limits.MaxConcurrency {
			continue
		}
		if best == nil || better(candidate, best, l) {
			best = candidate
		}
	}
	return best
}

// better says whether a is a better choice than b.
func better(a, b *pod, l *lease) bool {
	if avoidA, avoidB := l.avoids(a), l.avoids(b); avoidA != avoidB {
		return avoidB
	}
	if a.active != b.active {
		return a.active < b.active
	}
	return a.turn < b.turn
}

// hopeful says whether anybody who waits may yet be served by a pod that is there.
func (p *pool) hopeful() bool {
	for _, pod := range p.pods {
		if pod.state.usable() && !pod.stuck {
			return true
		}
	}
	return false
}

// leading returns the pod that those who wait wait for: the most advanced of those
// that are not ready yet; nil if there is none.
func (p *pool) leading() *pod {
	var lead *pod
	for _, pod := range p.pods {
		if (pod.state == creating || pod.state == starting) && (lead == nil || pod.phase() > lead.phase()) {
			lead = pod
		}
	}
	return lead
}

// stuckPod returns a pod that has been stuck for longer than there is patience.
func (p *pool) stuckPod() *pod {
	for _, pod := range p.pods {
		if pod.state.usable() && pod.stuck {
			return pod
		}
	}
	return nil
}
