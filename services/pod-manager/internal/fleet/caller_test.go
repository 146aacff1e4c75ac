// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/ownership"
)

// deadline is how long callers wait at most.
const deadline = time.Minute

func image(n int) string { return fmt.Sprintf("example.com/fn-%d:v1", n) }

// evaluate is a caller: it has a function evaluated through a gateway, and takes that long on the
// pod. What goes wrong is a failure of the simulation.
func (w *world) evaluate(image string, hold time.Duration) {
	w.mu.Lock()
	w.counted.requests++
	w.mu.Unlock()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var avoid []string
	for {
		held, by, err := w.lease(ctx, &lease.Open{Image: image, AvoidPods: avoid})
		if err != nil {
			w.fail("a caller of %s failed after %s: %v", image, time.Since(begin), err)
			return
		}
		g := held.Granted()
		if !w.answers(g.GetAddress()) {
			avoid = append(avoid, g.GetPod())
			wait(200 * time.Millisecond)
			held.Finish(lease.PodBroken, "connection refused")
			continue
		}
		w.use(types.UID(g.GetPodUid()), by, 1)
		w.mu.Lock()
		if g.GetColdStart() {
			w.counted.cold++
		}
		w.counted.slowest = max(w.counted.slowest, time.Since(begin))
		w.mu.Unlock()
		wait(hold)
		w.use(types.UID(g.GetPodUid()), by, -1)
		held.Finish(lease.Done, "")
		return
	}
}

// use counts leases on a pod that a replica granted.
func (w *world) use(uid types.UID, by *replica, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used[uid] == nil {
		w.used[uid] = make(map[*replica]int)
	}
	w.used[uid][by] += n
}

// leases counts the leases on a pod that suit, with the world locked.
func (w *world) leases(uid types.UID, suit func(*replica) bool) (n int) {
	for by, leases := range w.used[uid] {
		if suit(by) {
			n += leases
		}
	}
	return n
}

func (w *world) busy(uid types.UID) bool {
	return w.leases(uid, func(*replica) bool { return true }) > 0
}

// call starts a caller.
func (w *world) call(image string, hold time.Duration) {
	w.running.Go(func() { w.evaluate(image, hold) })
}

// gatewayTimeout is how long a gateway takes to notice that a replica is silent.
const gatewayTimeout = time.Second

// lease asks replicas as a gateway does: the owner by address first, then the one that it names,
// and again after a pause if none grants the lease.
func (w *world) lease(ctx context.Context, open *lease.Open) (lease.Lease, *replica, error) {
	last := fault.New(fault.Unavailable, "no replica")
	for {
		var tried []string
		for _, r := range w.inOrder(open.GetImage()) {
			next := &lease.Open{Image: open.GetImage(), AvoidPods: open.GetAvoidPods(), Tried: tried}
			held, err := r.leaseFor(ctx, next)
			if !lease.IsElsewhere(err) {
				return held, r, err
			}
			last = err
			tried = append(tried, r.address)
			if owner := w.at(lease.OwnerOf(err)); owner != nil && !owner.avoided() {
				held, err := owner.leaseFor(ctx, &lease.Open{Image: open.GetImage(), AvoidPods: open.GetAvoidPods(), Tried: tried})
				if !lease.IsElsewhere(err) {
					return held, owner, err
				}
				tried = append(tried, owner.address)
			}
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, errors.Join(ctx.Err(), last)
		}
	}
}

func (r *replica) avoided() bool { return r.silent.Load() || r.dead.Load() }

// leaseFor asks one replica, over a network that may lose what is sent.
func (r *replica) leaseFor(ctx context.Context, open *lease.Open) (lease.Lease, error) {
	if r.dead.Load() {
		return nil, lease.Elsewhere(errRefused)
	}
	if r.silent.Load() {
		wait(gatewayTimeout)
		return nil, lease.Elsewhere(errRefused)
	}
	return r.Lease(ctx, open, func(*lease.Waiting) {})
}

// inOrder returns the replicas in the order in which gateways ask them. DNS knows of dead ones.
func (w *world) inOrder(image string) []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	addresses := make([]string, 0, len(w.replicas))
	for _, r := range w.replicas {
		addresses = append(addresses, r.address)
	}
	ordered := make([]*replica, 0, len(w.replicas))
	for _, i := range ownership.Order(addresses, image) {
		ordered = append(ordered, w.replicas[i])
	}
	return ordered
}

// at returns the replica at an address; nil if there is none.
func (w *world) at(address string) *replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.replicas {
		if r.address == address {
			return r
		}
	}
	return nil
}

// owner returns the replica that owns an image, as itself knows; nil if none does.
func (w *world) owner(image string) *replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.replicas {
		if !r.dead.Load() && r.keeper.Owns(image) {
			return r
		}
	}
	return nil
}
