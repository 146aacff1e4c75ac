// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/ownership"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// backoff is the waits after no replica could be reached.
var backoff = retry.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}

// reachTimeout is how long all waits of a lease may take together: a pod-manager that is
// alone has restarted by then.
const reachTimeout = 15 * time.Second

// Lease implements lease.Manager: it asks the image's owner, and another replica if
// that cannot be reached or is shutting down. If no replica can be reached it goes
// on asking for a while, since a replica that restarts is soon there.
func (m *Manager) Lease(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
	rest, backoff := reachTimeout, backoff
	for {
		held, err := m.leaseFromAny(ctx, open, waiting)
		if !lease.IsElsewhere(err) {
			return held, err
		}
		wait := backoff.Next()
		rest -= wait
		if rest < 0 {
			return nil, fmt.Errorf("no pod-manager could be reached for %v: %w", reachTimeout, err)
		}
		waiting(&lease.Waiting{Reason: "no pod-manager can be reached: " + err.Error()})
		if !retry.Sleep(ctx, wait) {
			return nil, fault.New(fault.Of(ctx.Err()), "%w: %w", context.Cause(ctx), err)
		}
	}
}

// leaseFromAny asks one replica after the other, until one answers. A replica that names another
// one as the owner of the image is followed: replicas know each other better than DNS does.
func (m *Manager) leaseFromAny(
	ctx context.Context, open *lease.Open, waiting func(*lease.Waiting),
) (lease.Lease, error) {
	now := m.known.Load()
	r := round{
		manager: m, open: open, left: now.inOrder(open.GetImage(), time.Now()), events: make(chan event), err: now.err,
	}
	r.addTried(now.avoided(time.Now())...)
	held, err := r.run(ctx, waiting)
	if lease.IsElsewhere(err) {
		m.lookAgain()
	}
	return held, err
}

// avoided returns the addresses of the replicas that could not be reached lately. A replica that
// is asked in their place does not name them as owners.
func (k *known) avoided(now time.Time) []string {
	var addresses []string
	for _, r := range k.replicas {
		if r.avoided(now) {
			addresses = append(addresses, r.address)
		}
	}
	return addresses
}

// ownerFirst returns replicas with the one at an address first, if it is one of them: a replica
// that was asked already is not asked again.
func ownerFirst(replicas []*replica, owner string) []*replica {
	i := slices.IndexFunc(replicas, func(r *replica) bool { return r.address == owner })
	if i <= 0 {
		return replicas
	}
	return append([]*replica{replicas[i]}, slices.Delete(slices.Clone(replicas), i, i+1)...)
}

// inOrder returns the replicas in the order to ask them in for an image: recently reachable
// replicas first.
func (k *known) inOrder(image string, now time.Time) []*replica {
	if len(k.replicas) < 2 {
		return k.replicas
	}
	first, last := make([]*replica, 0, len(k.replicas)), []*replica(nil)
	for _, i := range ownership.Order(addressesOf(k.replicas), image) {
		if r := k.replicas[i]; r.avoided(now) {
			last = append(last, r)
		} else {
			first = append(first, r)
		}
	}
	return append(first, last...)
}
