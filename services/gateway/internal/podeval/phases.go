// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// phase is what is known of a phase.
type phase struct {
	// metric is its name in metrics.
	metric string
	// words describe it in errors.
	words string
	// entered and left are the names of the events at its two ends, if any.
	entered, left string
}

// phases has all phases of leases.
var phases = map[podmanagerv1.Phase]phase{
	podmanagerv1.Phase_PHASE_QUEUED:     {metric: "queue", words: "queued", entered: "queued"},
	podmanagerv1.Phase_PHASE_RESOLVING:  {metric: "resolve", words: "looking up the image", left: "resolved"},
	podmanagerv1.Phase_PHASE_CREATING:   {metric: "create", words: "creating the pod", left: "created"},
	podmanagerv1.Phase_PHASE_SCHEDULING: {metric: "schedule", words: "waiting for a node", left: "scheduled"},
	podmanagerv1.Phase_PHASE_PULLING:    {metric: "pull", words: "pulling images", left: "pulled"},
	podmanagerv1.Phase_PHASE_STARTING:   {metric: "start", words: "starting containers", left: "started"},
	podmanagerv1.Phase_PHASE_CONNECTING: {metric: "connect", words: "connecting to the pod"},
	phaseGranted:                        {entered: "ready"},
}

// phaseGranted stands for the end of all phases.
const phaseGranted podmanagerv1.Phase = -1

// events returns the names of the events when a lease goes from one phase to
// another.
func events(from, to podmanagerv1.Phase) []string {
	if from == to {
		return nil
	}
	var names []string
	if left := phases[from].left; left != "" {
		names = append(names, left)
	}
	// A lease that was granted at once did not wait for a pod to become ready.
	if to == phaseGranted && from == podmanagerv1.Phase_PHASE_UNSPECIFIED {
		return names
	}
	if entered := phases[to].entered; entered != "" {
		names = append(names, entered)
	}
	return names
}

// starting reports whether a phase belongs to the start of a pod.
func starting(p podmanagerv1.Phase) bool { return p >= podmanagerv1.Phase_PHASE_CREATING }
