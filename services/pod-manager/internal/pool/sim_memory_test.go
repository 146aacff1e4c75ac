// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// request is what a lease was asked for with.
type request struct {
	avoid []string
	at    time.Time
}

// noteMemory writes down which pods ran out of memory, unless the machine knows them to
// be gone: that is a late event, which it ignores.
func (r *referee) noteMemory(event pool.Event) {
	e, ok := event.(pool.PodObserved)
	if !ok || !e.Problem.OutOfMemory {
		return
	}
	for _, pod := range r.pools[e.Function].Pods {
		if pod.UID == e.UID {
			r.starved[e.Name] = r.now
		}
	}
}

// suspected reports whether a lease may not have a pod now: two that its caller lost ran
// out of memory, or may have, which will be known in six seconds at most.
func (r *referee) suspected(lease pool.LeaseID) bool {
	asked := r.requests[lease]
	for _, pod := range asked.avoid {
		if at, ran := r.starved[pod]; ran && r.now.Sub(at) < 10*time.Minute {
			continue
		}
		if !r.checks(pod) || r.now.Sub(asked.at) >= 6*time.Second {
			return false
		}
	}
	return len(asked.avoid) >= 2
}

// checks reports whether a pod is being asked for its health since it was found broken, or is
// there no more than to say why it does not answer.
func (r *referee) checks(name string) bool {
	for _, p := range r.pools {
		for _, pod := range p.Pods {
			if pod.Name == name {
				return strings.Contains(pod.Reason, "found it broken, and its health") ||
					strings.Contains(pod.Reason, "does not answer: ")
			}
		}
	}
	return false
}
