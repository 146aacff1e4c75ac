// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// listTimeout limits the DNS lookup of the pod-manager's replicas, and then separately the wait for their answers.
const listTimeout = 5 * time.Second

// views maps the address of each replica to the pools that the replica has returned.
type views map[string][]*podmanagerv1.Pool

// ListPools implements lease.Manager. It queries all replicas and merges their answers into one pool per function.
// It returns an error only if no replica answers, or if the DNS lookup does not succeed within listTimeout.
func (c *Client) ListPools(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	begin, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	replicas, err := c.awaitReplicas(begin)
	if err != nil {
		return nil, err
	}
	answers, errs := c.listAll(ctx, req, replicas)
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	lists, problems := make(views, len(replicas)), []string(nil)
	for i, r := range replicas {
		lists[r.Address()] = answers[i].GetPools()
		problems = append(problems, answers[i].GetProblems()...)
		if errs[i] != nil {
			problems = append(problems, fmt.Sprintf("the pod-manager at %s does not list its pods: %v", r.Address(), errs[i]))
		}
	}
	slices.Sort(problems) // replicas also list the problems of their peers
	return &podmanagerv1.ListPoolsResponse{Pools: lists.merge(), Problems: slices.Compact(problems)}, nil
}

// awaitReplicas looks up the replicas of the pod-manager in DNS, and retries until the lookup succeeds. When ctx
// ends, it returns the error of the last lookup.
func (c *Client) awaitReplicas(ctx context.Context) ([]*rpcclient.Replica, error) {
	for backoff := backoff; ; {
		all, err := c.findReplicas(ctx)
		if err == nil || !retry.Sleep(ctx, backoff.Next()) {
			return all, err
		}
	}
}

// listAll queries all replicas concurrently. For each replica, it returns the answer or an error.
func (c *Client) listAll(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest, replicas []*rpcclient.Replica,
) ([]*podmanagerv1.ListPoolsResponse, []error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	answers := make([]*podmanagerv1.ListPoolsResponse, len(replicas))
	errs := make([]error, len(replicas))
	var asked sync.WaitGroup
	for i, r := range replicas {
		asked.Go(func() {
			errs[i] = markSilence(r, r.Call(ctx, rpcclient.ProbeTimeout, lease.IsUnanswered,
				func(ctx context.Context, _ func()) (err error) {
					answers[i], err = c.client.ListPools(ctx, req)
					return err
				}))
		})
	}
	asked.Wait()
	return answers, errs
}

// poolKey identifies a function's pool.
type poolKey struct{ reference, digest string }

// merge returns one pool per function, ordered by image reference and digest. It adds up the counts of all replicas,
// because each replica counts only its own leases. All other fields are from the owner, the replica that creates the
// function's pods. merge recognizes the owner's pool by the field Replica, because only the owner sets this field.
func (v views) merge() []*podmanagerv1.Pool {
	same := make(map[poolKey][]*podmanagerv1.Pool)
	for _, address := range slices.Sorted(maps.Keys(v)) {
		for _, p := range v[address] {
			k := poolKey{p.GetKey().GetReference(), p.GetKey().GetDigest()}
			if p.GetReplica() != "" {
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

// addPool merges other, a second replica's description of the same pool, into pool. It adds the counts and the missing
// pods. If the last failure in other is more recent, it replaces the last failure in pool.
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

// addPod merges other, another replica's description of a pod, into pod. It adds the counts, and keeps the later
// expiry. A replica that uses the pod postpones the expiry, but other replicas list the earlier expiry for some time.
func addPod(pod, other *podmanagerv1.Pod) {
	pod.Active += other.GetActive()
	pod.LeasesTotal += other.GetLeasesTotal()
	if other.GetReclaimTime().AsTime().After(pod.GetReclaimTime().AsTime()) {
		pod.ReclaimTime = other.GetReclaimTime()
	}
}
