// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// referee watches a machine from outside, keeps its own books of who waits and who
// holds what, and holds the machine to its promises after each event.
type referee struct {
	machine *pool.Machine
	config  pool.Config
	now     time.Time

	waiting  map[pool.Function][]pool.LeaseID // in the order of the requests
	wants    map[pool.LeaseID]pool.Function   // waiting leases
	holds    map[pool.LeaseID]string          // the UIDs of the pods of granted leases
	held     map[string]int                   // leases by the UID of the pod
	extended map[string]time.Time             // last expiry that was written, by UID
	pools    map[pool.Function]status
	lives    lives
	minimum  map[pool.Function]int // pods that are kept
	requests map[pool.LeaseID]request
	starved  map[string]time.Time // when pods ran out of memory, by name
	// irregular reports whether ticks do not come each second: nothing comes in time then.
	irregular bool
}

func newReferee(config pool.Config) *referee {
	return &referee{
		machine:  pool.New(config),
		config:   config,
		waiting:  make(map[pool.Function][]pool.LeaseID),
		wants:    make(map[pool.LeaseID]pool.Function),
		holds:    make(map[pool.LeaseID]string),
		held:     make(map[string]int),
		extended: make(map[string]time.Time),
		pools:    make(map[pool.Function]status),
		lives:    make(lives),
		minimum:  make(map[pool.Function]int),
		requests: make(map[pool.LeaseID]request),
		starved:  make(map[string]time.Time),
	}
}

// handle has the machine handle an event, and returns what it broke, if anything.
func (r *referee) handle(now time.Time, event pool.Event) ([]pool.Action, error) {
	r.now = now
	r.expect(event)
	found := r.found(event)
	actions := r.machine.Handle(now, event)
	created := make(map[pool.Function]bool)
	for _, action := range actions {
		if err := r.judge(action); err != nil {
			return actions, err
		}
		if c, ok := action.(pool.Create); ok {
			created[c.Function] = true
		}
	}
	before := r.look()
	r.noteMemory(event)
	for f := range before {
		if err := r.judgeCounts(f); err != nil {
			return actions, err
		}
		if err := r.judgeLimits(event, f, before[f]+found, created[f]); err != nil {
			return actions, err
		}
	}
	if err := r.judgeTimes(event); err != nil && !r.irregular {
		return actions, err
	}
	if err := cmp.Or(r.judgeGranted(actions), r.judgeIDs(actions)); err != nil {
		return actions, err
	}
	return actions, r.judgeTotals()
}

// judgeTimes looks at what has to be over in time.
func (r *referee) judgeTimes(event pool.Event) error {
	return r.judgeLives(event)
}

// expect writes down what an event means for the books.
func (r *referee) expect(event pool.Event) {
	switch e := event.(type) {
	case pool.LeaseRequested:
		r.wants[e.Lease] = e.Function
		r.requests[e.Lease] = request{avoid: slices.Compact(slices.Sorted(slices.Values(e.Avoid))), at: r.now}
		r.waiting[e.Function] = append(r.waiting[e.Function], e.Lease)
	case pool.LeaseEnded:
		if _, ok := r.wants[e.Lease]; ok {
			r.answered(e.Lease)
		} else if uid, ok := r.holds[e.Lease]; ok {
			r.used(uid)
			delete(r.holds, e.Lease)
			if r.held[uid]--; r.held[uid] == 0 {
				delete(r.held, uid)
			}
		}
	case pool.MinPodsSet:
		r.minimum[e.Function] = e.Pods
	case pool.Configured:
		r.config = e.Config
	}
}

// answered takes a lease off the list of waiting ones.
func (r *referee) answered(lease pool.LeaseID) {
	f := r.wants[lease]
	delete(r.wants, lease)
	r.waiting[f] = slices.DeleteFunc(r.waiting[f], func(other pool.LeaseID) bool { return other == lease })
}

// limits returns the limits of a function, with one of everything at least.
func (r *referee) limits(f pool.Function) pool.Limits {
	l := r.config.Limits(f)
	l.MaxPods = max(l.MaxPods, 1)
	l.MaxConcurrency = max(l.MaxConcurrency, 1)
	return l
}

// judge holds one action to what the machine promised.
func (r *referee) judge(action pool.Action) error {
	switch a := action.(type) {
	case pool.Grant:
		return r.judgeGrant(a)
	case pool.Reject:
		if _, ok := r.wants[a.Lease]; !ok {
			return fmt.Errorf("lease %d is rejected, and does not wait", a.Lease)
		}
		r.answered(a.Lease)
		if a.Reason == "" || (a.Class != fault.Exhausted && a.Class != fault.Precondition && a.Class != fault.Unavailable) {
			return fmt.Errorf("lease %d is rejected as %s with the reason %q", a.Lease, a.Class, a.Reason)
		}
	case pool.Report:
		if _, ok := r.wants[a.Lease]; !ok {
			return fmt.Errorf("lease %d gets a report, and does not wait", a.Lease)
		}
	case pool.Delete:
		if n := r.held[a.UID]; n > 0 {
			return fmt.Errorf("pod %s is deleted while it holds %d leases", a.Name, n)
		}
		if a.UID == "" {
			return fmt.Errorf("pod %s is deleted, and was never seen", a.Name)
		}
		if a.Reason == "" {
			return fmt.Errorf("pod %s is deleted without a reason", a.Name)
		}
	case pool.Extend:
		return r.judgeExtend(a)
	case pool.Probe:
		if a.Address == "" || a.UID == "" {
			return fmt.Errorf("pod %s is asked for its health at %q, UID %q", a.Name, a.Address, a.UID)
		}
	}
	return nil
}

func (r *referee) judgeGrant(a pool.Grant) error {
	f, ok := r.wants[a.Lease]
	if !ok {
		return fmt.Errorf("lease %d is granted, and does not wait", a.Lease)
	}
	for _, earlier := range r.waiting[f] {
		if earlier == a.Lease {
			break
		}
		if !r.suspected(earlier) {
			return fmt.Errorf("lease %d is granted before %d, which was first", a.Lease, earlier)
		}
	}
	if a.Function != f || a.Address == "" || a.UID == "" {
		return fmt.Errorf("lease %d of %s is granted %+v", a.Lease, f.Reference, a)
	}
	r.answered(a.Lease)
	r.holds[a.Lease] = a.UID
	r.held[a.UID]++
	r.used(a.UID)
	if limit := r.limits(f).MaxConcurrency; r.held[a.UID] > limit {
		return fmt.Errorf("pod %s holds %d leases, and may hold %d", a.Pod, r.held[a.UID], limit)
	}
	return nil
}

// judgeExtend rejects extensions by less than a tenth of the time to live.
func (r *referee) judgeExtend(a pool.Extend) error {
	last, again := r.extended[a.UID]
	r.extended[a.UID] = a.ReclaimAfter
	for f, p := range r.pools {
		for _, pod := range p.Pods {
			if pod.UID == a.UID && again && a.ReclaimAfter.Sub(last) < r.limits(f).TTL/10 {
				return fmt.Errorf("pod %s is extended by %s", a.Name, a.ReclaimAfter.Sub(last))
			}
		}
	}
	return nil
}

// look takes the present state of all pools, and returns how many usable pods they had
// before, with those whose removal has just been cancelled.
func (r *referee) look() map[pool.Function]int {
	before := make(map[pool.Function]int)
	for _, f := range r.machine.Functions() {
		former, now := r.pools[f], r.statusOf(f)
		before[f] = usable(former) + cancelled(former, now)
		r.pools[f] = now
	}
	maps.DeleteFunc(r.pools, func(f pool.Function, _ status) bool { _, ok := before[f]; return !ok })
	return before
}

// cancelled counts the usable pods that were being removed before.
func cancelled(before, now status) int {
	n := 0
	for _, pod := range now.Pods {
		i := slices.IndexFunc(before.Pods, func(p podStatus) bool { return p.UID == pod.UID })
		if i >= 0 && pod.usable() && !before.Pods[i].usable() {
			n++
		}
	}
	return n
}

// status is a pool as the referee sees it.
type status struct {
	Function        pool.Function
	Waiting, Active int
	Pods            []podStatus
}

// podStatus is a pod as the referee sees it.
type podStatus struct {
	Name, UID, Reason string
	Slot, Active      int
	State             podmanagerv1.Pod_State
	Adopted, Outdated bool
	Ready             time.Time // zero until the pod was ready once
}

// statusOf returns the pool of a function.
func (r *referee) statusOf(f pool.Function) status {
	p, _ := r.machine.Status(f)
	s := status{Function: f, Waiting: int(p.GetWaiting()), Active: int(p.GetActive())}
	for _, pod := range p.GetPods() {
		known := podStatus{
			Name: pod.GetName(), UID: pod.GetUid(), Reason: pod.GetReason(),
			Slot: int(pod.GetSlot()), Active: int(pod.GetActive()), State: pod.GetState(), Adopted: pod.GetAdopted(),
			Outdated: r.machine.IsOutdated(pod.GetName()),
		}
		if pod.GetReadyTime() != nil {
			known.Ready = pod.GetReadyTime().AsTime()
		}
		s.Pods = append(s.Pods, known)
	}
	return s
}
