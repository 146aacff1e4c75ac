// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
)

// view contains the data that the template of the status page shows.
type view struct {
	*gatewayv1.GetStatusResponse

	Now      time.Time
	Problems []string
	Failures []*evalphase.Failures
	Pools    []*podmanagerv1.Pool
	Recent   []*gatewayv1.Evaluation
	// Name shortens the name of an image.
	Name func(image string) string
}

// pageView collects the data of the status page. If lister is nil, the page shows no pods.
func (s *Service) pageView(ctx context.Context, lister Pools, now time.Time) view {
	status, _ := s.GetStatus(ctx, &gatewayv1.GetStatusRequest{}) // never fails
	v := view{
		GetStatusResponse: status, Now: now, Problems: status.GetProblems(),
		Recent: s.history.Evaluations(evalhistory.Select{Max: shownEvaluations}),
	}
	list, err := listPools(ctx, lister)
	if err != nil {
		v.Problems = append([]string{"the pods are not known: " + err.Error()}, v.Problems...)
	}
	v.Pools = list.GetPools()
	v.Problems = slices.Concat(v.Problems, list.GetProblems(), evalphase.PoolProblems(v.Pools))
	failed := s.history.Evaluations(evalhistory.Select{Failed: true})
	v.Failures = evalphase.GroupFailures(failed)
	v.Name = evalphase.ShortNames(status, v.Pools, v.Recent, failed)
	// Sort functions and pools by problems first, and then by the amount of work.
	slices.SortStableFunc(status.GetFunctions(), func(a, b *gatewayv1.GetStatusResponse_Function) int {
		return cmp.Or(cmp.Compare(evalphase.Failed(b), evalphase.Failed(a)), cmp.Compare(b.GetRate(), a.GetRate()))
	})
	slices.SortStableFunc(v.Pools, func(a, b *podmanagerv1.Pool) int {
		return slices.Compare(troubleRank(b), troubleRank(a))
	})
	return v
}

// troubleRank returns the sort key by which the page lists pools with problems first. The key consists of four numbers:
// 1 for a failure (otherwise 0), the waiting requests, the pods that are not ready, and the leases.
func troubleRank(p *podmanagerv1.Pool) []int {
	failed := min(len(p.GetLastFailure()), 1)
	return []int{failed, int(p.GetWaiting()), len(p.GetPods()) - evalphase.Ready(p), int(p.GetActive())}
}

// listPools returns the function pods, grouped into pools. It returns no pools if lister is nil.
func listPools(ctx context.Context, lister Pools) (*podmanagerv1.ListPoolsResponse, error) {
	if lister == nil {
		return &podmanagerv1.ListPoolsResponse{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, poolsTimeout)
	defer cancel()
	return lister.ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
}

// Longest returns the duration of the longest evaluation on the page. The widths of all bars are relative to this
// duration.
func (v view) Longest() (longest time.Duration) {
	for _, e := range v.Recent {
		longest = max(longest, e.GetDuration().AsDuration())
	}
	return longest
}

// Ago returns a text for the time since an evaluation ended, such as "5s".
func (v view) Ago(e *gatewayv1.Evaluation) string { return evalphase.Short(v.Now.Sub(endTime(e))) }

// Function returns the short name of an evaluation's image. It returns "(rejected)" if the image is unknown,
// because the request was rejected before it was read completely.
func (v view) Function(e *gatewayv1.Evaluation) string {
	return cmp.Or(v.Name(evalphase.Image(e)), "(rejected)")
}

// Open reports whether the page shows the pods of a pool from the start. Users can unfold the pods of other pools.
func (v view) Open(p *podmanagerv1.Pool) bool {
	return len(v.Pools) <= openPools || slices.Max(troubleRank(p)[:3]) > 0
}

// Expires returns the time until an unused pod is deleted, as a short text. The text is empty while the pod is used.
func (v view) Expires(p *podmanagerv1.Pod) string {
	if p.GetReclaimTime() == nil || p.GetActive() > 0 {
		return ""
	}
	return evalphase.Short(p.GetReclaimTime().AsTime().Sub(v.Now))
}

// endTime returns the time when an evaluation ended.
func endTime(e *gatewayv1.Evaluation) time.Time {
	return e.GetStartTime().AsTime().Add(e.GetDuration().AsDuration())
}

// barUnits is the width of the bar for the longest evaluation, in SVG units.
const barUnits = 1000

// shownRows is the number of rows that a table shows at first. Users can unfold the rest.
const shownRows = 20

var functions = template.FuncMap{
	"beyond": func(n int) bool { return n >= shownRows },
	"ended":  func(e *gatewayv1.Evaluation) string { return endTime(e).UTC().Format(time.RFC3339) },
	"failed": evalphase.Failed, "image": evalphase.Image, "ready": evalphase.Ready,
	"counts": evalphase.Counts, "took": evalphase.Took,
	"short":  evalphase.Short,
	"phases": func() []string { return evalphase.Names },
	// units returns the width of a bar for the duration d. A bar for the duration total has the width barUnits. No bar is
	// narrower than the width least.
	"units": func(d, total time.Duration, least int) int {
		return max(min(int(float64(d)/float64(max(total, 1))*barUnits), barUnits), least)
	},
	// class returns the CSS class for a failure. fault is its cause: function, caller or system. The system's failures are
	// red.
	"class": func(fault string) string {
		return map[string]string{"function": "busy", "caller": "faint", evalphase.System: "bad"}[fault]
	},
	"lower": func(name interface{ String() string }, prefix string) string {
		return strings.ToLower(strings.TrimPrefix(name.String(), prefix))
	},
	// state returns the CSS class for the state of a pod. A failed pod is not red, because its image may be the cause.
	"state": func(p *podmanagerv1.Pod) string {
		switch p.GetState() {
		case podmanagerv1.Pod_STATE_READY:
			return "good"
		case podmanagerv1.Pod_STATE_STARTING, podmanagerv1.Pod_STATE_FAILED:
			return "busy"
		default:
			return "faint"
		}
	},
}
