// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// kube is a Kubernetes with its kubelets, seen through an informer.
type kube struct {
	world *world
	pods  map[string]*kubePod
	// gone are pods that the manager has not been told are gone.
	gone     []*kubePod
	births   map[string]int       // by name
	attempts map[string]int       // requests, by what they are for
	down     time.Time            // until when the API server is gone
	full     time.Time            // until when no node has capacity
	broken   map[string]time.Time // until when an image cannot be pulled, by reference
}

// kubePod is a pod.
type kubePod struct {
	seen    pool.Observation
	version int
	// delivered is when its last event arrives: the next do not overtake it.
	delivered time.Time
	ended     bool
	unhealthy time.Time // until when its wrapper server does not answer
}

// try counts the attempts at something, for the dice.
func (k *kube) try(what string) int {
	if k.attempts == nil {
		k.attempts = make(map[string]int)
	}
	k.attempts[what]++
	return k.attempts[what]
}

// unreachable is how long the API server will be gone.
func (k *kube) unreachable() time.Duration { return max(k.down.Sub(k.world.now), 0) }

// create does what the manager asked for, in its time.
func (k *kube) create(a pool.Create) {
	w, epoch, n := k.world, k.world.epoch, k.try("create "+a.Name)
	madeWith := w.setup
	w.after(w.delay(2*time.Second, "create", a.Name, n), func() {
		if _, exists := k.pods[a.Name]; !exists && w.setup.Quota > 0 && len(k.pods) >= w.setup.Quota {
			w.later(0, pool.CreateFailed{Name: a.Name, Problem: pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}})
			return
		}
		failed := k.unreachable() > 0 || w.fault(12, "create", a.Name, n)
		if !failed || w.fault(2, "created all the same", a.Name, n) {
			p := k.born(a, madeWith)
			if !failed && w.epoch == epoch { // what it returns comes past the watch
				w.later(w.delay(5*time.Second, "answer", a.Name, n), pool.PodObserved{Observation: p.seen})
			}
		}
		if failed && w.epoch == epoch {
			kind := []pool.ProblemKind{pool.Lost, pool.Lost, pool.Fatal}[w.roll(3, "failure", a.Name, n)]
			w.tell(pool.CreateFailed{Name: a.Name, Problem: pool.Problem{Kind: kind, Reason: "the API server has had enough"}})
		}
	})
}

// delete does what the manager asked for, in its time.
func (k *kube) delete(a pool.Delete) {
	w, n := k.world, k.try("delete "+a.Name)
	w.after(w.delay(2*time.Second, "delete", a.Name, n), func() {
		p, ok := k.pods[a.Name]
		switch {
		case k.unreachable() > 0, w.fault(12, "delete", a.Name, n):
			w.later(0, pool.DeleteFailed{Name: a.Name, UID: a.UID})
		case w.fault(40, "delete is lost", a.Name, n):
		case !ok || p.seen.UID != a.UID:
			w.later(0, pool.PodGone{Name: a.Name, UID: a.UID})
		case a.Version != "" && a.Version != p.seen.ResourceVersion:
			w.later(0, pool.DeleteFailed{Name: a.Name, UID: a.UID})
		default:
			k.end(p)
		}
	})
}

// end begins the end of a pod.
func (k *kube) end(p *kubePod) {
	if p.ended || p.seen.Deleting {
		return
	}
	p.seen.Deleting = true
	k.changed(p)
	k.world.after(k.world.delay(20*time.Second, "end", p.seen.UID), func() { k.kill(p) })
}

// kill ends a pod at once.
func (k *kube) kill(p *kubePod) {
	if p.ended {
		return
	}
	p.ended = true
	delete(k.pods, p.seen.Name)
	k.gone = append(k.gone, p)
	k.announce(p)
}

func (k *kube) extend(a pool.Extend) {
	w, n := k.world, k.try("extend "+a.Name)
	w.after(w.delay(2*time.Second, "extend", a.Name, n), func() {
		p, ok := k.pods[a.Name]
		if !ok || p.seen.UID != a.UID {
			return
		}
		if k.unreachable() == 0 && !w.fault(8, "extend", a.Name, n) {
			p.seen.ReclaimAfter = a.ReclaimAfter
			k.changed(p)
		}
	})
}

// sorted returns the pods by name.
func (k *kube) sorted() []*kubePod {
	pods := make([]*kubePod, 0, len(k.pods))
	for _, p := range k.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *kubePod) int { return cmpString(a.seen.Name, b.seen.Name) })
	return pods
}
