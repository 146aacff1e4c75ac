// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
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

// sharedPod is a pod with its version.
type sharedPod struct {
	pool.Observation
	version int
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
		p := &sharedPod{Observation: pool.Observation{
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
	if _, ok := r.pods[a.Pod]; !ok { // the other replica has just deleted it
		r.send(i, pool.LeaseEnded{Lease: a.Lease, Broken: "connection refused"})
		return
	}
	end := r.now.Sub(start) + time.Duration(1+r.IntN(40))*time.Second
	r.agenda[end] = append(r.agenda[end], func() { r.send(i, pool.LeaseEnded{Lease: a.Lease}) })
}

// delete deletes a pod, unless the other replica did.
func (r *replicas) delete(i int, a pool.Delete) error {
	p, ok := r.pods[a.Name]
	if !ok || p.UID != a.UID {
		return nil // the other replica was first
	}
	if a.Version != "" && a.Version != p.ResourceVersion {
		r.send(i, pool.DeleteFailed{Name: a.Name, UID: a.UID})
		return nil
	}
	delete(r.pods, a.Name)
	for i := range r.both {
		r.send(i, pool.PodGone{Name: a.Name, UID: a.UID})
	}
	return nil
}
