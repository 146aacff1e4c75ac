// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// finished contains the trace event for the end of each phase of a lease.
var finished = map[podmanagerv1.Phase]string{
	podmanagerv1.Phase_PHASE_RESOLVING:  "resolved",
	podmanagerv1.Phase_PHASE_CREATING:   "created",
	podmanagerv1.Phase_PHASE_SCHEDULING: "scheduled",
	podmanagerv1.Phase_PHASE_PULLING:    "pulled",
	podmanagerv1.Phase_PHASE_STARTING:   "started",
}

// phaseGranted represents the time after a lease was granted. The pod-manager's API has no phase for this time.
const phaseGranted podmanagerv1.Phase = -1

// eventsBetween returns the trace events for the change of a lease from one phase to another.
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
		names = append(names, "ready") // not for a lease that was granted at once, without a phase
	}
	return names
}

// isStarting reports whether a lease waits for the start of its pod. The start includes all phases from PHASE_CREATING
// on, because phases are numbered in the order of their occurrence.
func isStarting(p podmanagerv1.Phase) bool { return p >= podmanagerv1.Phase_PHASE_CREATING }
