// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// replicas are two machines in one Kubernetes, which does at once what it is asked for.
// Each has functions of its own, as callers agree on who has which.
type replicas struct {
	*rand.Rand
	now    time.Time
	agenda map[time.Duration][]func()
	both   [2]*referee
	events []func() error
	pods   map[string]*sharedPod
	leases pool.LeaseID
	idle   int // pods that were evicted for others
	// versions are the templates of both.
	versions [2]string
	created  map[string]int // pods, by function
}

func newReplicas(seed uint64, s setup) *replicas {
	return &replicas{
		Rand: rand.New(rand.NewPCG(seed, 3)), now: start, agenda: make(map[time.Duration][]func()),
		both: [2]*referee{newReferee(s.config()), newReferee(s.config())}, pods: make(map[string]*sharedPod),
		versions: [2]string{s.Template, s.Template}, created: make(map[string]int),
	}
}

// sharedPod is a pod, with who uses it.
type sharedPod struct {
	pool.Observation
	version, leases int
	used            time.Time // last
}

// TestTwoReplicas has two replicas share a limit of fewer pods than functions: neither
// takes away what the other one uses while there is a pod that neither uses.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	idle := 0
	for seed := range uint64(20) {
		r := newReplicas(seed, setup{
			Limits: pool.Limits{
				MaxPods: 1, MaxWaitlistLength: 4, MaxConcurrency: 4, MaxQueue: 100,
				TTL: 2 * time.Minute, ReadyTimeout: time.Minute,
			},
			Global: 5, MaxWaiting: 100, SchedulingTimeout: time.Minute, Scan: time.Minute, Template: "v0",
		})
		if err := r.run(30*time.Minute, r.askOwn); err != nil {
			t.Fatalf("seed %d, after %s: %v", seed, r.now.Sub(start), err)
		}
		idle += r.idle
	}
	t.Logf("%d idle pods evicted", idle)
	if idle < 100 {
		t.Errorf("%d idle pods evicted, too few to show anything", idle)
	}
}

// askOwn has one function of a replica used most of the time, and three now and then.
func (r *replicas) askOwn(i int) {
	switch r.IntN(60) {
	case 0, 1, 2, 3:
		r.ask(i, 4*i)
	case 4:
		r.ask(i, 4*i+1+r.IntN(3))
	}
}

// run lets time pass for both replicas, and has callers ask each second.
func (r *replicas) run(limit time.Duration, ask func(i int)) error {
	for end := r.now.Add(limit); r.now.Before(end); r.now = r.now.Add(time.Second) {
		for _, do := range r.agenda[r.now.Sub(start)] {
			do()
		}
		for i := range r.both {
			if r.both[i] != nil {
				r.send(i, pool.Tick{})
				ask(i)
			}
		}
		for len(r.events) > 0 {
			next := r.events[0]
			r.events = r.events[1:]
			if err := next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask has a function evaluated by a replica.
func (r *replicas) ask(i, n int) {
	r.leases++
	f := pool.Function{Reference: string(rune('e' + n)), Digest: "sha256:0"}
	r.send(i, pool.LeaseRequested{Lease: r.leases, Function: f})
}

// send queues an event for a replica, behind earlier ones.
func (r *replicas) send(i int, event pool.Event) {
	if r.both[i] == nil {
		return // it has not begun yet
	}
	r.events = append(r.events, func() error {
		actions, err := r.both[i].handle(r.now, event)
		for _, action := range actions {
			if err == nil {
				err = r.carryOut(i, action)
			}
		}
		return err
	})
}

// show tells both replicas how a pod is now.
func (r *replicas) show(p *sharedPod) {
	p.version++
	p.ResourceVersion = strconv.Itoa(p.version)
	for i := range r.both {
		r.send(i, pool.PodObserved{Observation: p.Observation})
	}
}

func (r *replicas) carryOut(i int, action pool.Action) error {
	switch a := action.(type) {
	case pool.Create:
		r.created[a.Function.Reference]++
		p := &sharedPod{used: r.now, Observation: pool.Observation{
			Name: a.Name, UID: fmt.Sprint(a.Name, " at ", r.now.Sub(start)),
			Function: a.Function, Slot: a.Slot, TemplateVersion: r.versions[i],
			Created: r.now, ReclaimAfter: a.ReclaimAfter, Phase: pool.PhaseConnecting, Address: a.Name + ":9446",
		}}
		r.pods[a.Name] = p
		r.show(p)
	case pool.Probe:
		r.send(i, pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question})
	case pool.Extend:
		if p, ok := r.pods[a.Name]; ok {
			p.ReclaimAfter = a.ReclaimAfter
			r.show(p)
		}
	case pool.Delete:
		return r.delete(i, a)
	case pool.Grant:
		r.use(i, a)
	}
	return nil
}

// use has a caller use a lease for a while.
func (r *replicas) use(i int, a pool.Grant) {
	p, ok := r.pods[a.Pod]
	if !ok { // the other replica has just deleted it
		r.send(i, pool.LeaseEnded{Lease: a.Lease, Broken: "connection refused"})
		return
	}
	p.leases++
	end := r.now.Sub(start) + time.Duration(1+r.IntN(40))*time.Second
	r.agenda[end] = append(r.agenda[end], func() {
		p.leases--
		p.used = r.now
		r.send(i, pool.LeaseEnded{Lease: a.Lease})
	})
}

// delete deletes a pod, unless it changed or that is wrong.
func (r *replicas) delete(i int, a pool.Delete) error {
	p, ok := r.pods[a.Name]
	switch {
	case !ok || p.UID != a.UID:
		return nil // the other replica was first
	case a.ResourceVersion != "" && a.ResourceVersion != p.ResourceVersion:
		r.send(i, pool.DeleteFailed{Name: a.Name, UID: a.UID, Reason: "conflict"})
		return nil
	case a.Eviction == "room" && p.leases == 0:
		r.idle++
	case p.leases > 0 && a.Eviction != "template":
		if idle := r.unused(); idle != "" || a.Eviction != "room" {
			return fmt.Errorf("replica %d deletes %s (%s), which the other one uses, and neither uses %q",
				i, a.Name, a.Reason, idle)
		}
	}
	delete(r.pods, a.Name)
	for i := range r.both {
		r.send(i, pool.PodGone{Name: a.Name, UID: a.UID})
	}
	return nil
}

// unused returns a pod that was not used for so long that both replicas know, and
// that is not about to go.
func (r *replicas) unused() string {
	for name, p := range r.pods {
		served := true
		for _, referee := range r.both {
			for _, pod := range referee.pools[p.Function].Pods {
				served = served && pod.State == pool.Ready
			}
		}
		if served && p.leases == 0 && r.now.Sub(p.used) > 20*time.Second {
			return name
		}
	}
	return ""
}
