// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/phase"
)

// Waits describes the reason for which a lease of a function waits, from the function's pools. It is empty if no
// lease waits.
func Waits(pools []*podmanagerv1.Pool) string {
	waiting := int32(0)
	for _, pool := range pools {
		if resolving(pool) {
			return phase.Describe(podmanagerv1.Phase_PHASE_RESOLVING)
		}
		waiting += pool.GetWaiting()
		for _, pod := range pool.GetPods() {
			if pod.GetState() == podmanagerv1.Pod_STATE_STARTING {
				return withReason(fmt.Sprintf("pod %s: %s", pod.GetName(), phase.Describe(pod.GetPhase())), pod.GetReason())
			}
		}
	}
	for _, pool := range pools {
		for _, pod := range pool.GetPods() {
			if pod.GetState() == podmanagerv1.Pod_STATE_FAILED {
				return withReason(fmt.Sprintf("pod %s: failed", pod.GetName()), pod.GetReason())
			}
		}
	}
	if waiting > 0 {
		return fmt.Sprintf("queued: all pods are busy, %d wait", waiting)
	}
	return ""
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + " (" + reason + ")"
}
