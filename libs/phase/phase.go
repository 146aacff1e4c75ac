// SPDX-License-Identifier: Apache-2.0

// Package phase defines the names and descriptions of the phases of an evaluation, such as "pull" and "run". The
// gateway, its status page and the command line tool fnctl use them.
package phase

import (
	"fmt"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Names contains the names of all phases, in the order in which an evaluation passes through them.
var Names = []string{"resolve", "queue", "create", "schedule", "pull", "start", "connect", "run"}

var leases = [...]struct{ name, description string }{
	podmanagerv1.Phase_PHASE_QUEUED:     {"queue", "queued"},
	podmanagerv1.Phase_PHASE_RESOLVING:  {"resolve", "looking up the image"},
	podmanagerv1.Phase_PHASE_CREATING:   {"create", "creating the pod"},
	podmanagerv1.Phase_PHASE_SCHEDULING: {"schedule", "waiting for a node"},
	podmanagerv1.Phase_PHASE_PULLING:    {"pull", "pulling images"},
	podmanagerv1.Phase_PHASE_STARTING:   {"start", "starting containers"},
	podmanagerv1.Phase_PHASE_CONNECTING: {"connect", "connecting to the pod"},
}

// Name returns the name of a phase of the wait for a pod, such as "pull". It returns an empty string for a phase
// that only later versions of the pod-manager have.
func Name(p podmanagerv1.Phase) string {
	if p < 0 || int(p) >= len(leases) {
		return ""
	}
	return leases[p].name
}

// Describe returns a description for users of the phase with the given name, such as "pulling images". It returns
// an empty string for names that are not phases of the wait for a pod.
func Describe(name string) string {
	for _, p := range leases {
		if p.name == name {
			return p.description
		}
	}
	return ""
}

// Counts returns the number of evaluations in each phase, as texts such as "3 run". It omits phases without any.
func Counts(counts map[string]int32) []string {
	var texts []string
	for _, name := range Names {
		if n := counts[name]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return texts
}

// Took formats the duration of a phase or of an evaluation with about three digits.
func Took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
