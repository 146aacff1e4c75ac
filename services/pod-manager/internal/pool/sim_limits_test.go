// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// usable counts the pods of a pool that take leases or will.
func usable(p status) int {
	n := 0
	for _, pod := range p.Pods {
		if pod.usable() {
			n++
		}
	}
	return n
}

func (p podStatus) usable() bool {
	return p.State == podmanagerv1.Pod_STATE_STARTING || p.State == podmanagerv1.Pod_STATE_READY
}

// found is how many pods an event shows that were not known: one or none.
func (r *referee) found(event pool.Event) int {
	e, ok := event.(pool.PodObserved)
	if !ok {
		return 0
	}
	for _, p := range r.pools {
		for _, pod := range p.Pods {
			if pod.Name == e.Name && (pod.UID == e.UID || pod.UID == "") {
				return 0
			}
		}
	}
	return 1
}

// judgeCounts compares the machine's counts of a function with the books.
func (r *referee) judgeCounts(f pool.Function) error {
	p := r.pools[f]
	if p.Waiting != len(r.waiting[f]) {
		return fmt.Errorf("%d leases wait for %s, says the machine; it is %d", p.Waiting, f.Reference, len(r.waiting[f]))
	}
	names := make(map[string]bool, len(p.Pods))
	for _, pod := range p.Pods {
		if pod.Active != r.held[pod.UID] {
			return fmt.Errorf("pod %s holds %d leases, says the machine; it is %d", pod.Name, pod.Active, r.held[pod.UID])
		}
		if names[pod.Name] {
			return fmt.Errorf("two pods are called %s", pod.Name)
		}
		names[pod.Name] = true
	}
	return nil
}

// judgeGranted holds the machine to lending only pods that serve, as one that is on its
// way, or is being checked, does not; and only to leases that may not have taken the
// memory of two others.
func (r *referee) judgeGranted(actions []pool.Action) error {
	for _, action := range actions {
		grant, ok := action.(pool.Grant)
		if !ok {
			continue
		}
		if r.suspected(grant.Lease) {
			return fmt.Errorf("lease %d is granted on %s, and may have run out of memory on %v",
				grant.Lease, grant.Pod, r.requests[grant.Lease].avoid)
		}
		for _, pod := range r.pools[grant.Function].Pods {
			if pod.UID == grant.UID && pod.State == podmanagerv1.Pod_STATE_STARTING {
				return fmt.Errorf("lease %d is granted on %s, which does not serve: %v", grant.Lease, grant.Pod, pod)
			}
		}
	}
	return nil
}

// judgeTotals looks at the counts of all functions.
func (r *referee) judgeTotals() error {
	counts := r.machine.Counts().Pods
	for f, p := range r.pools {
		for _, pod := range p.Pods {
			counts[pool.PodKind{Function: f, State: pod.State}]--
		}
	}
	for k, n := range counts {
		if n != 0 {
			return fmt.Errorf("the machine counts %d pods of %s too many in state %d", n, k.Function.Reference, k.State)
		}
	}
	if n := r.machine.Waiting(); n != len(r.wants) {
		return fmt.Errorf("%d leases wait, says the machine; it is %d", n, len(r.wants))
	}
	if n := r.machine.Leases(); n != len(r.wants)+len(r.holds) {
		return fmt.Errorf("the machine knows %d leases; %d wait, and %d are granted", n, len(r.wants), len(r.holds))
	}
	return nil
}

// maxSurge is the number of pods beyond a function's limit while an outdated one is replaced.
const maxSurge = 1

// judgeLimits holds the machine to the limit on a function's pods. It never creates
// one beyond it, and nothing else makes one usable beyond it than that it is found:
// expected is how many there were before, with that.
func (r *referee) judgeLimits(event pool.Event, f pool.Function, expected int, created bool) error {
	n, limit := usable(r.pools[f]), r.limits(f).MaxPods
	current := 0
	for _, pod := range r.pools[f].Pods {
		if !pod.Outdated && (pod.State == podmanagerv1.Pod_STATE_STARTING || pod.State == podmanagerv1.Pod_STATE_READY) {
			current++
		}
	}
	if created && (current > limit || n > max(limit, expected)+maxSurge) {
		return fmt.Errorf("a pod of %s was created; there are %d, %d up to date, and there may be %d",
			f.Reference, n, current, limit)
	}
	if !created && n > limit && n > expected {
		return fmt.Errorf("%s has %d pods after %T, and may have %d", f.Reference, n, event, limit)
	}
	return nil
}

// atRest returns an error for what is left although all is over.
func (r *referee) atRest() error {
	if len(r.wants)+len(r.holds) > 0 {
		return fmt.Errorf("the leases %v wait and %v are held although all callers are gone", r.wants, r.holds)
	}
	for f, p := range r.pools {
		if p.Waiting+p.Active > 0 {
			return fmt.Errorf("%s counts %d waiting and %d active, and there is none", f.Reference, p.Waiting, p.Active)
		}
	}
	return nil
}
