// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
)

// listTimeout bounds how long replicas may take to list their pools.
const listTimeout = 5 * time.Second

// views are the last lists of replicas, by address.
type views map[string][]*podmanagerv1.Pool

// ListPools implements lease.Manager: it lists the pools of all replicas that answer, each function's once. It is an
// error if none does, or if none is known within listTimeout.
func (m *Manager) ListPools(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	begin, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	replicas, err := m.await(begin)
	if err != nil {
		return nil, err
	}
	lists := make(views)
	errs := m.list(ctx, req, replicas, lists)
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	return &podmanagerv1.ListPoolsResponse{Pools: lists.merged(m.owners.of)}, nil
}

// WatchPools implements lease.Manager: it watches all replicas, also later ones. What a replica listed last stays
// until it answers again, or is gone.
func (m *Manager) WatchPools(
	ctx context.Context, req *podmanagerv1.WatchPoolsRequest, send func(*podmanagerv1.WatchPoolsResponse) error,
) error {
	last := make(views)
	return lease.Watch(ctx, func(ctx context.Context) ([]*podmanagerv1.Pool, error) {
		replicas, err := m.await(ctx)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(last, func(address string, _ []*podmanagerv1.Pool) bool {
			_, there := toFront(replicas, address)
			return !there
		})
		answering := slices.DeleteFunc(replicas, func(r *rpcclient.Replica) bool {
			_, listed := last[r.Address()]
			return listed && r.Silent()
		})
		m.list(ctx, &podmanagerv1.ListPoolsRequest{Image: req.GetImage()}, answering, last)
		return last.merged(m.owners.of), ctx.Err()
	}, send)
}

// await waits until replicas are known, and returns why none is when ctx ends.
func (m *Manager) await(ctx context.Context) ([]*rpcclient.Replica, error) {
	for backoff := backoff; ; {
		all, err := m.replicas(ctx)
		if err == nil || !retry.Sleep(ctx, backoff.Next()) {
			return all, err
		}
	}
}

// list puts the pools of replicas into lists, and returns each one's error. What a replica that fails listed before
// stays.
func (m *Manager) list(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest, replicas []*rpcclient.Replica, lists views,
) []error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	answers := make([]*podmanagerv1.ListPoolsResponse, len(replicas))
	errs := make([]error, len(replicas))
	var asked sync.WaitGroup
	for i, r := range replicas {
		asked.Go(func() {
			errs[i] = silence(r, m.service.Call(ctx, r, rpcclient.ProbeTimeout, lease.IsUnanswered,
				func(ctx context.Context, _ func()) (err error) {
					answers[i], err = m.client.ListPools(ctx, req)
					return err
				}))
		})
	}
	asked.Wait()
	for i, r := range replicas {
		if _, listed := lists[r.Address()]; errs[i] == nil || !listed {
			lists[r.Address()] = answers[i].GetPools()
		}
	}
	return errs
}

// poolKey identifies a function's pool.
type poolKey struct{ reference, digest string }

// merged returns all pools, each function's once, ordered by reference and digest. Each replica sees all pods of a
// function and knows only of its own leases: leases are added up, and the function's owner provides the rest.
func (v views) merged(ownerOf func(image string) string) []*podmanagerv1.Pool {
	same := make(map[poolKey][]*podmanagerv1.Pool)
	for _, address := range slices.Sorted(maps.Keys(v)) {
		for _, p := range v[address] {
			k := poolKey{p.GetKey().GetReference(), p.GetKey().GetDigest()}
			if address == ownerOf(k.reference) {
				same[k] = slices.Insert(same[k], 0, p)
			} else {
				same[k] = append(same[k], p)
			}
		}
	}
	all := make([]*podmanagerv1.Pool, 0, len(same))
	for _, views := range same {
		pool := views[0]
		if len(views) > 1 {
			pool = proto.CloneOf(pool)
		}
		for _, other := range views[1:] {
			addPool(pool, other)
		}
		all = append(all, pool)
	}
	slices.SortFunc(all, func(a, b *podmanagerv1.Pool) int {
		return cmp.Or(
			cmp.Compare(a.GetKey().GetReference(), b.GetKey().GetReference()),
			cmp.Compare(a.GetKey().GetDigest(), b.GetKey().GetDigest()),
		)
	})
	return all
}

// addPool adds another replica's counts, failure and pods to a pool.
func addPool(pool, other *podmanagerv1.Pool) {
	pool.Waiting += other.GetWaiting()
	pool.Active += other.GetActive()
	pool.LeasesTotal += other.GetLeasesTotal()
	pool.ColdStartsTotal += other.GetColdStartsTotal()
	if other.GetLastFailureTime().AsTime().After(pool.GetLastFailureTime().AsTime()) {
		pool.LastFailure, pool.LastFailureTime = other.GetLastFailure(), other.GetLastFailureTime()
	}
	for _, pod := range other.GetPods() {
		same := func(known *podmanagerv1.Pod) bool { return known.GetName() == pod.GetName() }
		if i := slices.IndexFunc(pool.GetPods(), same); i >= 0 {
			addPod(pool.GetPods()[i], pod)
		} else {
			pool.Pods = append(pool.Pods, proto.CloneOf(pod))
		}
	}
	slices.SortStableFunc(pool.Pods, func(a, b *podmanagerv1.Pod) int { return cmp.Compare(a.GetSlot(), b.GetSlot()) })
}

// addPod adds another replica's counts to a pod. The replica that uses the pod is the first to know a later expiry.
func addPod(pod, other *podmanagerv1.Pod) {
	pod.Active += other.GetActive()
	pod.LeasesTotal += other.GetLeasesTotal()
	if other.GetReclaimTime().AsTime().After(pod.GetReclaimTime().AsTime()) {
		pod.ReclaimTime = other.GetReclaimTime()
	}
}
