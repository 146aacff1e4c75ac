// SPDX-License-Identifier: Apache-2.0

package phase

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

// ShortNames returns a function that shortens the names of images to their last path element, except where two of the
// images that are shown share that element.
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

// Image returns the displayed name of an evaluation's function: the canonical name after it was resolved.
func Image(e *gatewayv1.Evaluation) string { return cmp.Or(e.GetResolved(), e.GetImage()) }

// Short returns a duration in its one or two largest units, such as "3m5s", and "0s" for a negative duration.
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

// Failures are equal failures of a function.
type Failures struct {
	// Last is the newest of them.
	Last  *gatewayv1.Evaluation
	Count int
}

// System is the fault of failures that neither the function nor its caller can mend.
const System = "system"

// GroupFailures groups failed evaluations with the same image, code and reason: failures of the system first, then
// in the order given.
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

// Failed returns how many of a function's samples failed.
func Failed(f *gatewayv1.GetStatusResponse_Function) int {
	if f.GetRate() == 0 {
		return 0
	}
	return int(math.Round(f.GetFailedRate() / f.GetRate() * float64(f.GetSamples())))
}

// Ready returns the number of a pool's pods that accept leases.
func Ready(pool *podmanagerv1.Pool) (ready int) {
	for _, pod := range pool.GetPods() {
		if pod.GetState() == podmanagerv1.Pod_STATE_READY {
			ready++
		}
	}
	return ready
}

// PoolProblems returns a sentence about the pools that cannot get pods, with the last failure of any of them. It is
// empty if all pools can.
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
