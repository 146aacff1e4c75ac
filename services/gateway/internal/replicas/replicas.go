// SPDX-License-Identifier: Apache-2.0

// Package replicas leases pods from the replicas of the pod-manager. Each function has one replica as its owner, which
// creates and deletes the function's pods. Every other replica names the owner in its answer, even if it grants a lease
// on a ready pod. The gateway remembers the owner, and calls it first for the next lease.
package replicas

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
)

// Client leases pods from the replicas of a pod-manager. It prefers a function's owner, the replica that creates the
// function's pods.
type Client struct {
	service *rpcclient.Client
	client  *lease.Client
	// owners maps the image of a function to the address of the replica that owns the function.
	owners *lru.Cache[string, string]
}

// maxOwners is the maximum number of functions whose owner is remembered.
const maxOwners = 10_000

var _ lease.Manager = (*Client)(nil)

// New returns a Client for the pod-manager at url. Each DNS address of the URL's host is a replica. service must
// be a client for the same URL.
func New(service *rpcclient.Client, url string) *Client {
	owners, _ := lru.New[string, string](maxOwners) // fails only if maxOwners is not positive
	return &Client{service: service, client: lease.NewClient(service.HTTP, url, service.Options...), owners: owners}
}

// backoff is the delay between retries while the gateway can reach no replica of the pod-manager.
var backoff = retry.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}

// reachTimeout limits the retries while the gateway can reach no replica of the pod-manager. It is the maximum sum of
// the delays between retries. A pod-manager with a single replica needs less time for a restart.
const reachTimeout = 15 * time.Second

// Lease implements lease.Manager. If no replica can be reached, it retries for up to reachTimeout, so that callers
// do not notice a restart of the pod-manager.
func (c *Client) Lease(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
	rest, backoff := reachTimeout, backoff
	for probeTimeout := rpcclient.ProbeTimeout; ; probeTimeout *= 2 {
		held, err := c.leaseFromAny(ctx, open, waiting, probeTimeout)
		if !lease.IsElsewhere(err) {
			return held, err
		}
		wait := backoff.Next()
		rest -= wait
		if rest < 0 {
			// Do not wrap err. It may contain a redirect to another replica, and the gateway's caller must not receive it.
			return nil, fault.New(fault.Of(err), "no pod-manager could be reached for %v: %v", reachTimeout, err)
		}
		waiting(&lease.Waiting{Reason: "no pod-manager can be reached: " + err.Error()})
		if !retry.Sleep(ctx, wait) {
			return nil, fault.New(fault.Of(ctx.Err()), "%w: %w", context.Cause(ctx), err)
		}
	}
}

// leaseFromAny requests a lease from the replicas, starting with the function's owner if it is known. It stops when a
// replica grants the lease, or rejects it for a reason that applies to all replicas.
func (c *Client) leaseFromAny(
	ctx context.Context, open *lease.Open, waiting func(*lease.Waiting), probeTimeout time.Duration,
) (lease.Lease, error) {
	left, err := c.findReplicas(ctx)
	if err != nil {
		return nil, err
	}
	image := open.GetImage()
	open = proto.CloneOf(open)
	for _, r := range left {
		if r.Silent() { // other replicas must not name a silent replica as the owner
			open.Tried = append(open.Tried, r.Address())
		}
	}
	if owner, _ := c.owners.Get(image); !slices.Contains(open.GetTried(), owner) {
		left, _ = toFront(left, owner)
	}
	for len(left) > 0 {
		r := left[0]
		left = left[1:]
		var held lease.Lease
		held, err = c.leaseFrom(ctx, r, open, waiting, probeTimeout)
		if err == nil {
			c.owners.Add(image, cmp.Or(held.Granted().GetOwner(), r.Address()))
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
		// Replica r has named the owner, so call the owner next. If the owner does not grant a lease, call r again. Because
		// open.Tried then contains the owner, r serves the request itself. If DNS does not list the owner, the owner is not
		// ready, or its address is of another IP family. In this case, add the owner to open.Tried without a call.
		left = append([]*rpcclient.Replica{r}, left...)
		var known bool
		if left, known = toFront(left, owner); !known {
			open.Tried = append(open.Tried, owner)
		}
	}
	return nil, err
}

// findReplicas looks up the replicas of the pod-manager in DNS. If the lookup fails, findReplicas marks the error as
// [lease.Elsewhere]. Because of this mark, the method Lease retries.
func (c *Client) findReplicas(ctx context.Context) ([]*rpcclient.Replica, error) {
	all, err := c.service.Replicas(ctx)
	if err != nil {
		return nil, lease.Elsewhere(fault.New(fault.Unavailable, "look up the pod-manager: %w", err))
	}
	return all, nil
}

// toFront returns a list that begins with the replica at address, so that the gateway calls this replica next. If the
// list does not contain the replica, toFront returns the unchanged list and false.
func toFront(replicas []*rpcclient.Replica, address string) ([]*rpcclient.Replica, bool) {
	i := slices.IndexFunc(replicas, func(r *rpcclient.Replica) bool { return r.Address() == address })
	if i < 0 {
		return replicas, false
	}
	return append([]*rpcclient.Replica{replicas[i]}, slices.Delete(slices.Clone(replicas), i, i+1)...), true
}

func (c *Client) leaseFrom(ctx context.Context, r *rpcclient.Replica, open *lease.Open,
	waiting func(*lease.Waiting), probeTimeout time.Duration,
) (held lease.Lease, err error) {
	err = r.Call(ctx, probeTimeout, lease.IsUnanswered, func(ctx context.Context, answered func()) (err error) {
		held, err = c.client.Lease(ctx, open, func(w *lease.Waiting) {
			answered()
			waiting(w)
		})
		return err
	})
	return held, markSilence(r, err)
}

// markSilence marks the error of a replica that does not answer as [lease.Elsewhere]. Because of this mark, the gateway
// calls the next replica. Other errors are returned unchanged.
func markSilence(r *rpcclient.Replica, err error) error {
	if !errors.Is(err, rpcclient.ErrSilent) {
		return err
	}
	err = fault.New(fault.Unavailable, "call the pod-manager at %s: %w", r.Address(), rpcclient.ErrSilent)
	return lease.Elsewhere(err)
}
