// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

const (
	// listTimeout bounds how long one replica may take to list its pools.
	listTimeout = 5 * time.Second
	// watchTimeout is the same for a list that a watcher gets; it sees the list before until then.
	watchTimeout = time.Second
)

// views are the last lists of replicas, by address.
type views map[string][]*podmanagerv1.Pool

// ListPools implements lease.Manager: it lists the pools of all replicas that answer, each
// function's once. It is an error if none does, or if none is known within listTimeout.
func (m *Manager) ListPools(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	begin, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	now, err := m.await(begin)
	if err != nil {
		return nil, err
	}
	lists := make(views)
	errs := m.list(ctx, req, now.replicas, listTimeout, lists)
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	return &podmanagerv1.ListPoolsResponse{Pools: lists.merged()}, nil
}

// WatchPools implements lease.Manager: it watches all replicas, also later ones.
// What a replica listed last stays until it answers again, or is gone.
func (m *Manager) WatchPools(
	ctx context.Context, req *podmanagerv1.WatchPoolsRequest, send func(*podmanagerv1.WatchPoolsResponse) error,
) error {
	last := make(views)
	return lease.Watch(ctx, func(ctx context.Context) ([]*podmanagerv1.Pool, error) {
		now, err := m.await(ctx)
		if err != nil {
			return nil, err
		}
		m.list(ctx, &podmanagerv1.ListPoolsRequest{Image: req.GetImage()}, now.reachable(last), watchTimeout, last)
		last.keep(now.replicas)
		return last.merged(), ctx.Err()
	}, send)
}

// await waits until replicas are known, and returns why none is when ctx ends.
func (m *Manager) await(ctx context.Context) (*known, error) {
	select {
	case <-m.found:
	case <-ctx.Done():
	}
	now := m.known.Load()
	return now, now.err
}

// reachable returns the replicas to list now. It leaves out replicas that could not be
// reached lately, unless they were never listed.
func (k *known) reachable(last views) []*replica {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(k.replicas), func(r *replica) bool {
		_, listed := last[r.address]
		return listed && r.avoided(now)
	})
}

// list puts the pools of replicas into lists, and returns each one's error. What a replica
// that fails listed before stays.
func (m *Manager) list(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest,
	replicas []*replica, timeout time.Duration, lists views,
) []error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make([]*podmanagerv1.ListPoolsResponse, len(replicas))
	errs := make([]error, len(replicas))
	var asked sync.WaitGroup
	for i, r := range replicas {
		asked.Go(func() { answers[i], errs[i] = r.ListPools(limited, req) })
	}
	asked.Wait()
	for i, r := range replicas {
		switch {
		case errs[i] == nil:
			lists[r.address] = answers[i].GetPools()
		case ctx.Err() == nil:
			m.markFailed(ctx, r, errs[i])
			if _, asked := lists[r.address]; !asked {
				lists[r.address] = nil
			}
		}
	}
	return errs
}

// keep forgets the lists of replicas that are gone.
func (v views) keep(replicas []*replica) {
	addresses := addressesOf(replicas)
	for address := range v {
		if !slices.Contains(addresses, address) {
			delete(v, address)
		}
	}
}

// merged returns all pools, each function's once, ordered by reference and digest.
func (v views) merged() []*podmanagerv1.Pool {
	type poolKey struct{ reference, digest string }
	same := make(map[poolKey]map[string]*podmanagerv1.Pool)
	for address, pools := range v {
		for _, p := range pools {
			k := poolKey{p.GetKey().GetReference(), p.GetKey().GetDigest()}
			if same[k] == nil {
				same[k] = make(map[string]*podmanagerv1.Pool)
			}
			same[k][address] = p
		}
	}
	all := make([]*podmanagerv1.Pool, 0, len(same))
	for _, of := range same {
		all = append(all, merged(of))
	}
	slices.SortFunc(all, func(a, b *podmanagerv1.Pool) int {
		return cmp.Or(
			cmp.Compare(a.GetKey().GetReference(), b.GetKey().GetReference()),
			cmp.Compare(a.GetKey().GetDigest(), b.GetKey().GetDigest()),
		)
	})
	return all
}
