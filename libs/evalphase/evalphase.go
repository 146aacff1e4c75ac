// SPDX-License-Identifier: Apache-2.0

// Package evalphase names and describes the phases of an evaluation, such as "pull" and "run". The gateway, its status
// page and the command line tool fnctl use this package.
package evalphase

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Names contains the names of all phases, in the order of an evaluation.
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

// Name returns the name of a phase in which an evaluation waits for a pod, such as "pull". It returns an empty
// string for phases that this version does not know.
func Name(p podmanagerv1.Phase) string {
	if p < 0 || int(p) >= len(leases) {
		return ""
	}
	return leases[p].name
}

// Describe returns a phase's description for users, such as "pulling images". It returns an empty string for names
// that are not phases of the wait for a pod.
func Describe(name string) string {
	for _, p := range leases {
		if p.name == name {
			return p.description
		}
	}
	return ""
}

// Counts formats the number of evaluations per phase, such as "3 run". It omits phases without evaluations.
func Counts(counts map[string]int32) []string {
	var texts []string
	for _, name := range Names {
		if n := counts[name]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return texts
}

// Took formats the duration of a phase or an evaluation with about three digits.
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

// ShortNames returns a function that shortens an image's name for display. The returned function reduces the name to
// its last path element. It returns the full name if another image in the arguments has the same last path element.
func ShortNames(
	status *gatewayv1.GetStatusResponse, pools []*podmanagerv1.Pool, evaluations ...[]*gatewayv1.Evaluation,
) func(string) string {
	owners, shared := map[string]string{}, map[string]bool{}
	add := func(image string) {
		short := path.Base(image)
		if owner, ok := owners[short]; ok && owner != image {
			shared[short] = true
		}
		owners[short] = image
	}
	for _, w := range status.GetWaiting() {
		add(w.GetImage())
	}
	for _, pool := range pools {
		add(pool.GetKey().GetReference())
	}
	for _, e := range slices.Concat(evaluations...) {
		add(Image(e))
	}
	return func(image string) string {
		if short := path.Base(image); image != "" && !shared[short] {
			return short
		}
		return image
	}
}

// Image returns the name of an evaluation's image for display. This is the canonical name, or the name in the request
// if the image has not been resolved yet.
func Image(e *gatewayv1.Evaluation) string { return cmp.Or(e.GetResolved(), e.GetImage()) }

// Short formats a duration in its one or two largest units, such as "3m5s". Negative durations become "0s".
func Short(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 10*60:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
	}
}

// Failures is a group of failed evaluations with the same image, code and reason. The status page shows each group as
// a line.
type Failures struct {
	// Last is the newest evaluation of the group.
	Last  *gatewayv1.Evaluation
	Count int
}

// System is the fault of an evaluation that failed because of the function runner or the cluster, and not because of
// the function or its caller.
const System = "system"

// GroupFailures groups failed evaluations with the same image, code and reason. The evaluations must be sorted from
// newest to oldest. Groups of system failures come first. Otherwise, the groups are in the order of their newest
// evaluations.
func GroupFailures(failed []*gatewayv1.Evaluation) []*Failures {
	type key struct{ image, code, reason string }
	byKey, groups := map[key]*Failures{}, []*Failures{}
	for _, e := range failed {
		k := key{Image(e), e.GetCode(), e.GetReason()}
		if byKey[k] == nil {
			byKey[k] = &Failures{Last: e}
			groups = append(groups, byKey[k])
		}
		byKey[k].Count++
	}
	rank := func(f *Failures) int {
		if f.Last.GetFault() == System {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(groups, func(a, b *Failures) int { return cmp.Compare(rank(a), rank(b)) })
	return groups
}

// Failed returns how many of a function's last evaluations failed. It computes this number from rates, because the
// status does not contain it.
func Failed(f *gatewayv1.GetStatusResponse_Function) int {
	if f.GetRate() == 0 {
		return 0
	}
	return int(math.Round(f.GetFailedRate() / f.GetRate() * float64(f.GetSamples())))
}

// Ready returns the number of a pool's pods that are ready for evaluations.
func Ready(pool *podmanagerv1.Pool) (ready int) {
	for _, pod := range pool.GetPods() {
		if pod.GetState() == podmanagerv1.Pod_STATE_READY {
			ready++
		}
	}
	return ready
}

// PoolProblems returns a sentence for users about the pools that cannot get a pod, with the number of pools and an
// example. It returns nil if there is no such pool.
func PoolProblems(pools []*podmanagerv1.Pool) []string {
	count, example := 0, ""
	for _, pool := range pools {
		if pool.GetLastFailure() != "" {
			count++
			example = cmp.Or(example, path.Base(pool.GetKey().GetReference())+": "+pool.GetLastFailure())
		}
	}
	if count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d functions cannot get a pod: %s", count, len(pools), example)}
}
