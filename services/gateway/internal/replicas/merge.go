// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/ownership"
)

// merged returns a function's pool as users see it: all replicas see all of its
// pods, but each knows only of its own leases. The views are by the replica's address,
// at least one; they are not changed.
//
// The function's owner provides what can have one value only. Leases are added up, since
// another replica has some while the owner changes.
func merged(views map[string]*podmanagerv1.Pool) *podmanagerv1.Pool {
	addresses := slices.Sorted(maps.Keys(views))
	if len(addresses) == 1 {
		return views[addresses[0]]
	}
	var pool *podmanagerv1.Pool
	for _, i := range ownership.Order(addresses, views[addresses[0]].GetKey().GetReference()) {
		if pool == nil {
			pool = proto.CloneOf(views[addresses[i]])
		} else {
			addPool(pool, views[addresses[i]])
		}
	}
	slices.SortStableFunc(pool.Pods, func(a, b *podmanagerv1.Pod) int { return cmp.Compare(a.GetSlot(), b.GetSlot()) })
	return pool
}

// addPool adds what another replica knows of a pool.
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
}

// addPod adds what another replica knows of a pod. The replica that uses it is the first to
// know a later expiry.
func addPod(pod, other *podmanagerv1.Pod) {
	pod.Active += other.GetActive()
	pod.LeasesTotal += other.GetLeasesTotal()
	if other.GetReclaimTime().AsTime().After(pod.GetReclaimTime().AsTime()) {
		pod.ReclaimTime = other.GetReclaimTime()
	}
}
