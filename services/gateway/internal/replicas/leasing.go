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

const (
	// firstPause is the pause after no replica could be reached; each further one is
	// twice as long, up to maxPause.
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
	// reachTimeout is how long all pauses of a lease may take together: a pod-manager
	// that is alone is back by then.
	reachTimeout = 15 * time.Second
)

// Lease implements lease.Manager: it asks the image's owner, and another replica if
// that cannot be reached or is shutting down. If no replica can be reached it goes
// on asking for a while, as a replica that starts anew is soon there.
func (m *Manager) Lease(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
	rest := reachTimeout
	for next := firstPause; ; next = min(2*next, maxPause) {
		held, err := m.leaseFromAny(ctx, open, waiting)
		if !lease.IsElsewhere(err) {
			return held, err
		}
		rest -= next
		if rest < 0 {
			return nil, fmt.Errorf("no pod-manager could be reached for %v: %w", reachTimeout, err)
		}
		waiting(&lease.Waiting{Reason: "no pod-manager can be reached: " + err.Error()})
		if !retry.Sleep(ctx, next) {
			return nil, fault.New(fault.Of(ctx.Err()), "%w: %w", context.Cause(ctx), err)
		}
	}
}

// leaseFromAny asks one replica after the other, until one answers.
func (m *Manager) leaseFromAny(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
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
