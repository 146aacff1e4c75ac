// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// finished maps a phase of a lease to the name of the span event at the end of the phase.
var finished = map[podmanagerv1.Phase]string{
	podmanagerv1.Phase_PHASE_RESOLVING:  "resolved",
	podmanagerv1.Phase_PHASE_CREATING:   "created",
	podmanagerv1.Phase_PHASE_SCHEDULING: "scheduled",
	podmanagerv1.Phase_PHASE_PULLING:    "pulled",
	podmanagerv1.Phase_PHASE_STARTING:   "started",
}

// phaseGranted is the pseudo-phase after a lease is granted.
const phaseGranted podmanagerv1.Phase = -1

// eventsBetween returns the names of the span events for a change of a lease's phase.
func eventsBetween(from, to podmanagerv1.Phase) []string {
	if from == to {
		return nil
	}
	var names []string
	if name := finished[from]; name != "" {
		names = append(names, name)
	}
	switch {
	case to == podmanagerv1.Phase_PHASE_QUEUED:
		names = append(names, "queued")
	case to == phaseGranted && from != podmanagerv1.Phase_PHASE_UNSPECIFIED:
		names = append(names, "ready") // no event for a lease without a phase: it was granted at once
	}
	return names
}

// isStarting reports whether a phase is part of the start of a pod.
func isStarting(p podmanagerv1.Phase) bool { return p >= podmanagerv1.Phase_PHASE_CREATING }
