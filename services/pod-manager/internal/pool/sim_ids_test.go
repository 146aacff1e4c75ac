// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// judgeIDs holds the machine to creating no pod with an id that another pod has: they
// would share a Service.
func (r *referee) judgeIDs(actions []pool.Action) error {
	for _, action := range actions {
		c, ok := action.(pool.Create)
		if !ok {
			continue
		}
		id := r.config.PodID(c.Function, c.Slot)
		for _, pod := range r.withIDs()[id] {
			if pod.Name != c.Name {
				return fmt.Errorf("pod %s is created with the id %s, which %s has", c.Name, id, pod.Name)
			}
		}
	}
	return nil
}

// withIDs returns all pods by id.
func (r *referee) withIDs() map[string][]pool.PodStatus {
	pods := make(map[string][]pool.PodStatus)
	for f, p := range r.pools {
		for _, pod := range p.Pods {
			id := r.config.PodID(f, pod.Slot)
			pods[id] = append(pods[id], pod)
		}
	}
	return pods
}

// judgeTwins looks with each tick whether two pods with one id, which replicas may have
// made, both serve for longer than until the next scan.
func (r *referee) judgeTwins(event pool.Event) error {
	if _, tick := event.(pool.Tick); !tick {
		return nil
	}
	since := r.twins
	r.twins = make(map[[2]string]time.Time)
	for _, pods := range r.withIDs() {
		for i, a := range pods {
			for _, b := range pods[i+1:] {
				pair := [2]string{min(a.UID, b.UID), max(a.UID, b.UID)}
				if !serves(a) || !serves(b) {
					continue
				}
				if r.twins[pair] = since[pair]; since[pair].IsZero() {
					r.twins[pair] = r.now
				}
				if age := r.now.Sub(r.twins[pair]); age > r.config.ScanInterval+2*time.Second {
					return fmt.Errorf("pods %s and %s have shared an id for %s", a.Name, b.Name, age)
				}
			}
		}
	}
	return nil
}

// serves reports whether a pod is there, and takes leases or will.
func serves(pod pool.PodStatus) bool {
	s := pod.State
	return pod.UID != "" && (s == pool.Starting || s == pool.Ready)
}
