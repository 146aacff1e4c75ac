// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// deadline is how long callers wait at most.
const deadline = time.Minute

func image(n int) string { return fmt.Sprintf("example.com/fn-%d:v1", n) }

// evaluate is a caller: it has a function evaluated through a gateway, which takes hold on the pod. A caller that
// gets no pod, or whose evaluation is cut, is a failure of the simulation.
func (w *world) evaluate(image string, hold time.Duration) {
	w.mu.Lock()
	w.counted.requests++
	w.mu.Unlock()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var avoid []string
	for {
		held, err := w.lease(ctx, &lease.Open{Image: image, AvoidPods: avoid})
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
		evaluation := use{types.UID(g.GetPodUid()), held.by}
		w.use(evaluation, 1)
		w.mu.Lock()
		if g.GetColdStart() {
			w.counted.cold++
		}
		w.counted.slowest = max(w.counted.slowest, time.Since(begin))
		w.mu.Unlock()
		wait(hold)
		w.use(evaluation, -1)
		held.Finish(lease.Done, "")
		if !w.exists(g.GetAddress()) {
			w.fail("an evaluation of %s in %s was cut", image, g.GetPod())
		}
		return
	}
}

// use counts evaluations in a pod.
func (w *world) use(u use, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used[u] += n; w.used[u] == 0 {
		delete(w.used, u)
	}
}

// call starts a caller.
func (w *world) call(image string, hold time.Duration) {
	w.running.Go(func() { w.evaluate(image, hold) })
}

// granted is a lease with the name of the replica that granted it.
type granted struct {
	lease.Lease
	by string
}

const (
	// gatewayTimeout is how long a gateway takes to notice that a replica is silent.
	gatewayTimeout = time.Second
	// reachTimeout bounds the sum of a gateway's waits while it reaches no replica.
	reachTimeout = 15 * time.Second
)

// lease asks replicas as a gateway does, which retries while none grants the lease.
func (w *world) lease(ctx context.Context, open *lease.Open) (granted, error) {
	rest, pause := reachTimeout, 50*time.Millisecond
	for {
		held, err := w.leaseFromAny(ctx, open)
		if !lease.IsElsewhere(err) {
			return held, err
		}
		if rest -= pause; rest < 0 {
			return granted{}, fmt.Errorf("no replica could be reached for %s: %w", reachTimeout, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return granted{}, errors.Join(ctx.Err(), err)
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// leaseFromAny asks the replica that granted the function's last lease, then the owner that a replica names, then all
// others that DNS names, until one answers. In the mode in which pod-managers are part of what callers call, each
// caller has one of them.
func (w *world) leaseFromAny(ctx context.Context, open *lease.Open) (held granted, err error) {
	err = lease.Elsewhere(fault.New(fault.Unavailable, "no replica"))
	left := w.dns()
	if w.setup.InProcess {
		left = left[:min(len(left), 1)]
	}
	next := &lease.Open{Image: open.GetImage(), AvoidPods: open.GetAvoidPods()}
	for _, r := range left {
		if r.noticed.Load() && r.away() {
			next.Tried = append(next.Tried, r.address)
		}
	}
	w.mu.Lock()
	left, _ = toFront(left, w.owners[open.GetImage()])
	w.mu.Unlock()
	for len(left) > 0 {
		r := left[0]
		left = left[1:]
		held.by = r.name
		held.Lease, err = r.leaseFor(ctx, next)
		if err == nil {
			w.mu.Lock()
			w.owners[open.GetImage()] = r.address
			w.mu.Unlock()
		}
		if !lease.IsElsewhere(err) {
			return held, err
		}
		next = &lease.Open{Image: next.GetImage(), AvoidPods: next.GetAvoidPods(), Tried: slices.Clone(next.GetTried())}
		next.Tried = append(next.Tried, r.address)
		owner := lease.OwnerOf(err)
		if owner == "" || slices.Contains(next.GetTried(), owner) {
			continue
		}
		var known bool
		if left, known = toFront(append([]*replica{r}, left...), owner); !known {
			next.Tried = append(next.Tried, owner)
		}
	}
	return granted{}, err
}

// toFront returns replicas with the one at an address first, and whether it is one of them.
func toFront(replicas []*replica, address string) ([]*replica, bool) {
	i := slices.IndexFunc(replicas, func(r *replica) bool { return r.address == address })
	if i < 0 {
		return replicas, false
	}
	return append([]*replica{replicas[i]}, slices.Delete(slices.Clone(replicas), i, i+1)...), true
}

// away reports whether gateways do not reach a replica.
func (r *replica) away() bool { return r.silent.Load() || r.dead.Load() }

// leaseFor asks one replica, over a network that may lose what is sent.
func (r *replica) leaseFor(ctx context.Context, open *lease.Open) (lease.Lease, error) {
	r.noticed.Store(r.away())
	if r.dead.Load() {
		return nil, lease.Elsewhere(errRefused)
	}
	if r.silent.Load() {
		wait(gatewayTimeout)
		return nil, lease.Elsewhere(errRefused)
	}
	return r.Lease(ctx, open, func(*lease.Waiting) {})
}

// dns returns the replicas that DNS names, in turn: ready ones, and ones that ended without notice. Gateways
// keep the last names if there is none.
func (w *world) dns() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	var named []*replica
	for _, r := range w.replicas {
		if r.ready() && (!w.setup.InProcess || !r.dead.Load()) {
			named = append(named, r)
		}
	}
	if len(named) == 0 {
		return w.named
	}
	w.named = named
	w.turn++
	turn := w.turn % len(named)
	return slices.Concat(named[turn:], named[:turn])
}

// ready reports whether a replica's readiness probe succeeds.
func (r *replica) ready() bool {
	select {
	case <-r.serves:
		return !r.left.Load() && r.keeper.Owners().StoodDown == ""
	default:
		return false
	}
}

// imageOfAnother returns the n-th image of those that another replica than r owns.
func (w *world) imageOfAnother(r *replica, n int) string {
	for i := 3000; ; i++ {
		if w.owner(image(i)) == r {
			continue
		}
		if n == 0 {
			return image(i)
		}
		n--
	}
}

// owner returns the replica that owns an image, as itself knows; nil if none does.
func (w *world) owner(image string) *replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.replicas {
		if !r.dead.Load() && r.keeper.Owners().Owner(image).Mine {
			return r
		}
	}
	return nil
}
