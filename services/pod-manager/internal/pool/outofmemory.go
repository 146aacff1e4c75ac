// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// maxOutOfMemoryPods pods lost to memory end an evaluation; a single loss may be another
	// evaluation's fault.
	maxOutOfMemoryPods = 2
	// verdictTimeout is how long a lease waits for the kubelet to report why its caller's
	// pods broke: for as long as it may take to check one. The kubelet takes a second.
	verdictTimeout = 2 * checkTimeout
)

// memoryVerdict is whether the pods that a lease's caller lost all ran out of memory.
type memoryVerdict int

const (
	notOutOfMemory memoryVerdict = iota // they did not, or that will never be known
	pending                             // the kubelet has not reported on all of them, and still may
	outOfMemory
)

// distinct returns each name once: a pod that broke twice is one pod.
func distinct(names []string) []string {
	var first []string
	for _, name := range names {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// memoryVerdictOf returns whether the pods that a lease's caller lost ran out of memory. A caller
// learns of the end of a pod before the kubelet reports why.
func (ls *leases) memoryVerdictOf(now time.Time, l *lease) memoryVerdict {
	if len(l.avoid) < maxOutOfMemoryPods {
		return notOutOfMemory
	}
	found := outOfMemory
	for _, name := range l.avoid {
		pod := ls.pods[name]
		switch {
		case ls.ranOutOfMemory(name):
		case pod != nil && pod.explainable() && now.Sub(l.requested.at) < verdictTimeout:
			found = pending
		default:
			return notOutOfMemory
		}
	}
	return found
}

func (ls *leases) ranOutOfMemory(pod string) bool {
	_, ran := ls.outOfMemory[pod]
	return ran
}

// inquire checks the pods that a lease's caller lost and that seem to serve, if another one
// that it lost is suspected already: a request may come before the end of the caller's last
// lease, and before the kubelet's report.
func (ls *leases) inquire(s *step, l *lease) {
	if len(l.avoid) < maxOutOfMemoryPods {
		return
	}
	var serving []*pod
	for _, name := range l.avoid {
		pod := ls.pods[name]
		switch {
		case ls.ranOutOfMemory(name), pod != nil && pod.state == checking:
		case pod != nil && pod.state == ready:
			serving = append(serving, pod)
		default:
			return
		}
	}
	if len(serving) == len(l.avoid) {
		return
	}
	for _, pod := range serving {
		pod.check(s, false)
	}
}

// rejectOutOfMemory rejects leases whose callers' pods all ran out of memory. A further pod most
// likely would too, and take along what others run on it.
func (ls *leases) rejectOutOfMemory(s *step, p *pool) {
	if len(ls.outOfMemory) == 0 {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if ls.memoryVerdictOf(s.at, l) != outOfMemory {
			continue
		}
		ls.reject(s, l, fault.Precondition, fmt.Sprintf("out of memory: the kernel ended pods %s while they ran "+
			"this evaluation: give the function a larger memory limit, or make the package smaller",
			strings.Join(l.avoid, " and ")), 0)
	}
}
