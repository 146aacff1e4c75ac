// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
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

// leaseFromAny asks one replica after the other, until one answers.
func (m *Manager) leaseFromAny(
	ctx context.Context, open *lease.Open, waiting func(*lease.Waiting),
) (lease.Lease, error) {
	now := m.known.Load()
	err := now.err
	for _, r := range now.inOrder(open.GetImage(), time.Now()) {
		var held lease.Lease
		if held, err = r.Lease(ctx, open, waiting); !lease.IsElsewhere(err) {
			return held, err
		}
		m.failed(ctx, r, err)
	}
	m.lookAgain()
	return nil, err
}

// inOrder returns the replicas in the order to ask them in for an image: recently reachable
// replicas first.
func (k *known) inOrder(image string, now time.Time) []*replica {
	if len(k.replicas) < 2 {
		return k.replicas
	}
	first, last := make([]*replica, 0, len(k.replicas)), []*replica(nil)
	for _, i := range order(addressesOf(k.replicas), image) {
		if r := k.replicas[i]; r.avoided(now) {
			last = append(last, r)
		} else {
			first = append(first, r)
		}
	}
	return append(first, last...)
}
