// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"

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
func (r *referee) withIDs() map[string][]podStatus {
	pods := make(map[string][]podStatus)
	for f, p := range r.pools {
		for _, pod := range p.Pods {
			id := r.config.PodID(f, pod.Slot)
			pods[id] = append(pods[id], pod)
		}
	}
	return pods
}
