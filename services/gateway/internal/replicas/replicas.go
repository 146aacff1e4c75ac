// SPDX-License-Identifier: Apache-2.0

// Package replicas leases pods from the replicas of the pod-manager. One replica owns each function. A replica that
// does not own the function names the owner in its answer, even if it grants a lease on a ready pod. The gateway
// stores the owner, and calls it first for the next lease.
package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
)

// Manager is a [lease.Manager] that calls the replicas of the pod-manager.
type Manager struct {
	service *rpcclient.Client
	client  *lease.Client
	owners  owners
}

var _ lease.Manager = (*Manager)(nil)

// New returns a manager for the pod-managers at a URL, http://host:port or https://host:port. service must be the
// client for the same URL. Each DNS address of the host is a replica.
func New(service *rpcclient.Client, url string) *Manager {
	return &Manager{service: service, client: lease.NewClient(service.HTTP, url, service.Options...)}
}

// backoff is the delay after a round of calls in which no replica could be reached.
var backoff = retry.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}

// reachTimeout limits the sum of the backoff delays of a lease. A single pod-manager restarts within this time.
const reachTimeout = 15 * time.Second

// Lease implements lease.Manager. If no replica can be reached it retries for up to reachTimeout.
func (m *Manager) Lease(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
	rest, backoff := reachTimeout, backoff
	for probeTimeout := rpcclient.ProbeTimeout; ; probeTimeout *= 2 {
		held, err := m.leaseFromAny(ctx, open, waiting, probeTimeout)
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

// leaseFromAny calls replicas until a replica grants the lease or finally rejects it. It calls the stored owner of
// the function first, then the owner that a replica names, and then the remaining replicas.
func (m *Manager) leaseFromAny(
	ctx context.Context, open *lease.Open, waiting func(*lease.Waiting), probeTimeout time.Duration,
) (lease.Lease, error) {
	left, err := m.findReplicas(ctx)
	if err != nil {
		return nil, err
	}
	image := open.GetImage()
	open = proto.CloneOf(open)
	for _, r := range left {
		if r.Silent() { // without this, other replicas would still name the silent replica as the owner
			open.Tried = append(open.Tried, r.Address())
		}
	}
	if owner := m.owners.ownerOf(image); !slices.Contains(open.GetTried(), owner) {
		left, _ = toFront(left, owner)
	}
	for len(left) > 0 {
		r := left[0]
		left = left[1:]
		var held lease.Lease
		held, err = m.leaseFrom(ctx, r, open, waiting, probeTimeout)
		if err == nil {
			m.owners.setOwner(image, cmp.Or(held.Granted().GetOwner(), r.Address()))
		}
		if !lease.IsElsewhere(err) {
			return held, err
		}
		open = proto.CloneOf(open) // the stream of the previous call still uses the previous message
		open.Tried = append(open.Tried, r.Address())
		owner := lease.OwnerOf(err)
		if owner == "" || slices.Contains(open.GetTried(), owner) {
			continue
		}
		// Call r again after the owner that r named, because a replica serves callers that have tried the owner. An
		// owner that DNS does not list counts as tried: it is not ready, or its address is of another family.
		left = append([]*rpcclient.Replica{r}, left...)
		var known bool
		if left, known = toFront(left, owner); !known {
			open.Tried = append(open.Tried, owner)
		}
	}
	return nil, err
}

// findReplicas returns all replicas. Its error is marked as [lease.Elsewhere], so that Lease retries.
func (m *Manager) findReplicas(ctx context.Context) ([]*rpcclient.Replica, error) {
	all, err := m.service.Replicas(ctx)
	if err != nil {
		return nil, lease.Elsewhere(fault.New(fault.Unavailable, "look up the pod-manager: %w", err))
	}
	return all, nil
}

// toFront returns replicas with the replica at address moved to the front, and reports whether replicas contains it.
func toFront(replicas []*rpcclient.Replica, address string) ([]*rpcclient.Replica, bool) {
	i := slices.IndexFunc(replicas, func(r *rpcclient.Replica) bool { return r.Address() == address })
	if i < 0 {
		return replicas, false
	}
	return append([]*rpcclient.Replica{replicas[i]}, slices.Delete(slices.Clone(replicas), i, i+1)...), true
}

func (m *Manager) leaseFrom(ctx context.Context, r *rpcclient.Replica, open *lease.Open,
	waiting func(*lease.Waiting), probeTimeout time.Duration,
) (held lease.Lease, err error) {
	err = m.service.Call(ctx, r, probeTimeout, lease.IsUnanswered, func(ctx context.Context, answered func()) (err error) {
		held, err = m.client.Lease(ctx, open, func(w *lease.Waiting) {
			answered()
			waiting(w)
		})
		return err
	})
	return held, markSilence(r, err)
}

// markSilence marks the error of a replica that answers neither the call nor probes as [lease.Elsewhere].
func markSilence(r *rpcclient.Replica, err error) error {
	if !errors.Is(err, rpcclient.ErrSilent) {
		return err
	}
	err = fault.New(fault.Unavailable, "call the pod-manager at %s: %w", r.Address(), rpcclient.ErrSilent)
	return lease.Elsewhere(err)
}

// maxOwners is the maximum number of functions whose owner is stored.
const maxOwners = 10_000

// owners maps images to the addresses of their owners, the replicas that own the functions.
type owners struct {
	mu      sync.Mutex
	byImage map[string]string
}

// ownerOf returns the address of a function's owner. It is empty if the owner is unknown.
func (o *owners) ownerOf(image string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byImage[image]
}

func (o *owners) setOwner(image, address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.byImage[image]; o.byImage == nil || (!known && len(o.byImage) >= maxOwners) {
		o.byImage = make(map[string]string) // emptied when full: replicas name the owners again
	}
	o.byImage[image] = address
}
