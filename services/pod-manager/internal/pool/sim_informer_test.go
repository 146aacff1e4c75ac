// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func cmpString(a, b string) int { return cmp.Compare(a, b) }

// changed gives a pod its next version, and announces it to the manager.
func (k *kube) changed(p *kubePod) {
	p.version++
	p.seen.ResourceVersion = strconv.Itoa(p.version)
	k.announce(p)
}

// announce sends the manager how a pod is now: some time, perhaps twice, perhaps
// not at all, but not before what was sent earlier.
func (k *kube) announce(p *kubePod) {
	w, n := k.world, k.try("announce "+p.seen.UID)
	if w.fault(10, "event is lost", p.seen.UID, n) {
		return // the next list tells
	}
	copies := 1
	if w.fault(10, "event comes twice", p.seen.UID, n) {
		copies = 2
	}
	for i := range copies {
		at := w.now.Add(k.unreachable() + w.delay(time.Second, "event", p.seen.UID, n, i))
		if at.Before(p.delivered) {
			at = p.delivered
		}
		p.delivered = at
		k.deliver(p, at)
	}
}

// deliver tells the manager how a pod is now, at a time.
func (k *kube) deliver(p *kubePod, at time.Time) {
	w, epoch, seen, ended := k.world, k.world.epoch, p.seen, p.ended
	w.after(at.Sub(w.now), func() {
		if w.epoch != epoch {
			return
		}
		if !ended {
			w.tell(pool.PodObserved{Observation: seen})
			return
		}
		k.gone = slices.DeleteFunc(k.gone, func(other *kubePod) bool { return other == p })
		w.tell(pool.PodGone{Name: seen.Name, UID: seen.UID})
	})
}

// list tells the manager what it may have missed.
func (k *kube) list() {
	if k.unreachable() > 0 {
		return
	}
	for _, p := range append(k.sorted(), k.gone...) {
		p.delivered = later(p.delivered, k.world.now)
		k.deliver(p, p.delivered)
	}
}

// adopt tells a new manager what there is.
func (k *kube) adopt() {
	k.gone = nil
	for _, p := range k.sorted() {
		k.world.tell(pool.PodObserved{Observation: p.seen})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
