// SPDX-License-Identifier: Apache-2.0

// Package replicas leases pods from the replicas of the pod-manager. Pod-managers know which replica owns a function:
// a replica that does not own the function names the owner, also if it grants a lease on a ready pod. The gateway
// remembers the owner.
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

// Manager is a [lease.Manager] that calls all replicas.
type Manager struct {
	service *rpcclient.Client
	client  *lease.Client
	owners  owners
}

var _ lease.Manager = (*Manager)(nil)

// New returns a manager for the pod-managers at a URL, http://host:port or https://host:port. service is the client of
// that URL. Each DNS address of the host is a replica.
func New(service *rpcclient.Client, url string) *Manager {
	return &Manager{service: service, client: lease.NewClient(service.HTTP, url, service.Options...)}
}

// backoff is the delay after a round in which no replica could be reached.
var backoff = retry.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}

// reachTimeout limits the sum of these delays for a lease: a single pod-manager restarts in less time.
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

// leaseFromAny calls replicas until one of them answers: first the remembered owner of the function, then the owner
// that a replica names, and then the remaining replicas.
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
		if r.Silent() { // replicas would still name it as the owner
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
		open = proto.CloneOf(open) // the stream uses the previous message
		open.Tried = append(open.Tried, r.Address())
		owner := lease.OwnerOf(err)
		if owner == "" || slices.Contains(open.GetTried(), owner) {
			continue
		}
		// A replica serves callers that tried the owner it named. An owner without a DNS address counts as tried: it is not
		// ready, or its address is of another family.
		left = append([]*rpcclient.Replica{r}, left...)
		var known bool
		if left, known = toFront(left, owner); !known {
			open.Tried = append(open.Tried, owner)
		}
	}
	return nil, err
}

// findReplicas returns all replicas. Its error is marked as lease.Elsewhere.
func (m *Manager) findReplicas(ctx context.Context) ([]*rpcclient.Replica, error) {
	all, err := m.service.Replicas(ctx)
	if err != nil {
		return nil, lease.Elsewhere(fault.New(fault.Unavailable, "look up the pod-manager: %w", err))
	}
	return all, nil
}

// toFront moves the replica at an address to the front, and reports whether there is such a replica.
func toFront(replicas []*rpcclient.Replica, address string) ([]*rpcclient.Replica, bool) {
	i := slices.IndexFunc(replicas, func(r *rpcclient.Replica) bool { return r.Address() == address })
	if i < 0 {
		return replicas, false
	}
	return append([]*rpcclient.Replica{replicas[i]}, slices.Delete(slices.Clone(replicas), i, i+1)...), true
}

// leaseFrom requests a lease from one replica.
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

// markSilence marks the error of a silent replica as lease.Elsewhere.
func markSilence(r *rpcclient.Replica, err error) error {
	if !errors.Is(err, rpcclient.ErrSilent) {
		return err
	}
	err = fault.New(fault.Unavailable, "call the pod-manager at %s: %w", r.Address(), rpcclient.ErrSilent)
	return lease.Elsewhere(err)
}

// maxOwners is the maximum number of functions in owners.
const maxOwners = 10_000

// owners stores the addresses of the functions' owners.
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

// setOwner stores the address of a function's owner.
func (o *owners) setOwner(image, address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.byImage[image]; o.byImage == nil || !known && len(o.byImage) >= maxOwners {
		o.byImage = make(map[string]string) // redirects restore it
	}
	o.byImage[image] = address
}
