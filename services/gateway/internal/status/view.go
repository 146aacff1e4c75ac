// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/phase"
)

// view is what the page shows, as texts. The template escapes them.
type view struct {
	Replica, Version, Up string
	Active, Phases       []string
	// Problems are what is wrong; none if all is well.
	Problems    []string
	Functions   []functionView
	Waiting     []waitingView
	Failures    []failureView
	Pools       []poolView
	Evaluations []evaluationView
	// Scale is the duration that a bar of full width stands for.
	Scale string
}

type functionView struct {
	Image, Rate, Median, P99 string
	Failed, Samples          int
}

type waitingView struct {
	Function, Image, Phase, For, Reason string
	Count                               int32
}

type failureView struct {
	ID, Function, Image, Ago, Time, Fault, Class, Code, Reason, TraceID string
	Count                                                               int
}

type poolView struct {
	Name, Reference, Digest string
	Ready, Pods, Waiting    int
	Active                  int32
	Failure                 string
	Rows                    []podView
	// Open is whether the page shows the pods before the user has chosen.
	Open bool
}

type podView struct{ Name, State, Class, Reason, Load, Age, Expires, Node string }

type evaluationView struct {
	ID, Function, Image, Where, Code, Class, Took, Ago, Time, TraceID string
	Cold                                                              bool
	Steps                                                             []stepView
	Attempts                                                          int32
}

// stepView is a phase, with its place in a bar of 1000 units.
type stepView struct {
	Phase, Took, Reason string
	X, Width            int
}

// functions returns the functions: those with failures first, then the most used.
func functions(all []*gatewayv1.GetStatusResponse_Function) []functionView {
	slices.SortStableFunc(all, func(a, b *gatewayv1.GetStatusResponse_Function) int {
		return cmp.Or(cmp.Compare(phase.Failed(b), phase.Failed(a)), cmp.Compare(b.GetRate(), a.GetRate()))
	})
	views := make([]functionView, len(all))
	for i, f := range all {
		views[i] = functionView{
			f.GetImage(), fmt.Sprintf("%.2f", f.GetRate()), phase.Took(f.GetMedian().AsDuration()),
			phase.Took(f.GetP99().AsDuration()), phase.Failed(f), int(f.GetSamples()),
		}
	}
	return views
}

func waiting(all []*gatewayv1.GetStatusResponse_Waiting, name func(string) string) []waitingView {
	views := make([]waitingView, len(all))
	for i, w := range all {
		views[i] = waitingView{
			Function: name(w.GetImage()), Image: w.GetImage(), Phase: w.GetPhase(),
			For: short(w.GetLongest().AsDuration()), Reason: w.GetReason(), Count: w.GetCount(),
		}
	}
	return views
}

// classes are the classes of the style sheet for failures, by fault. Red is for the system.
var classes = map[string]string{"function": "busy", "caller": "faint", phase.System: "bad"}

// rejected is shown in place of the function of a request that was not read to its end.
const rejected = "(rejected)"

func newFailure(f *phase.Failures, now time.Time, name func(string) string) failureView {
	e := f.Last
	ended := e.GetStartTime().AsTime().Add(e.GetDuration().AsDuration())
	id := fnv.New64a()
	_, _ = fmt.Fprint(id, phase.Image(e), "\n", e.GetCode(), "\n", e.GetReason()) // never fails
	return failureView{
		ID: fmt.Sprintf("%x", id.Sum64()), Function: cmp.Or(name(phase.Image(e)), rejected), Image: phase.Image(e),
		Ago: short(now.Sub(ended)), Time: ended.UTC().Format(time.RFC3339), Fault: e.GetFault(),
		Class: classes[e.GetFault()], Code: e.GetCode(), Reason: e.GetReason(), TraceID: e.GetTraceId(), Count: f.Count,
	}
}

// states are the states of pods, and the classes of the style sheet for them.
var states = map[podmanagerv1.Pod_State][2]string{
	podmanagerv1.Pod_STATE_STARTING: {"starting", "busy"},
	podmanagerv1.Pod_STATE_READY:    {"ready", "good"},
	podmanagerv1.Pod_STATE_DRAINING: {"draining", "faint"},
	podmanagerv1.Pod_STATE_FAILED:   {"failed", "bad"},
	podmanagerv1.Pod_STATE_DELETING: {"deleting", "faint"},
}

// pools returns the pools: those with a problem first, then the most used.
func pools(all []*podmanagerv1.Pool, now time.Time, name func(string) string) []poolView {
	views := make([]poolView, len(all))
	for i, p := range all {
		views[i] = newPool(p, now, name)
	}
	slices.SortStableFunc(views, func(a, b poolView) int {
		trouble := func(p poolView) []int {
			failed := min(len(p.Failure), 1)
			return []int{failed, p.Waiting, p.Pods - p.Ready, int(p.Active)}
		}
		return slices.Compare(trouble(b), trouble(a))
	})
	for i := range views {
		views[i].Open = views[i].Open || len(all) <= openPools
	}
	return views
}

func newPool(p *podmanagerv1.Pool, now time.Time, name func(string) string) poolView {
	reference := p.GetKey().GetReference()
	v := poolView{
		Name: name(reference), Reference: reference, Digest: p.GetKey().GetDigest(), Ready: phase.Ready(p),
		Waiting: int(p.GetWaiting()), Active: p.GetActive(), Pods: len(p.GetPods()), Failure: p.GetLastFailure(),
	}
	for _, pod := range p.GetPods() {
		v.Rows = append(v.Rows, newPod(pod, p.GetLimits().GetMaxConcurrency(), now))
	}
	v.Open = v.Waiting > 0 || v.Failure != "" || v.Ready < v.Pods
	return v
}

func newPod(p *podmanagerv1.Pod, concurrency int32, now time.Time) podView {
	state, reason := states[p.GetState()], p.GetReason()
	if p.GetState() == podmanagerv1.Pod_STATE_STARTING {
		doing := strings.ToLower(strings.TrimPrefix(p.GetPhase().String(), "PHASE_"))
		reason = strings.TrimSuffix(doing+": "+reason, ": ")
	}
	v := podView{
		Name: p.GetName(), State: state[0], Class: state[1], Reason: reason, Node: p.GetNode(),
		Load: fmt.Sprintf("%d/%d", p.GetActive(), concurrency),
	}
	if p.GetCreateTime() != nil {
		v.Age = short(now.Sub(p.GetCreateTime().AsTime()))
	}
	if p.GetReclaimTime() != nil && p.GetActive() == 0 {
		v.Expires = short(p.GetReclaimTime().AsTime().Sub(now))
	}
	return v
}

// barUnits is the width of the bar of the evaluation that took longest.
const barUnits = 1000

// evaluations returns the evaluations, with their bars on one scale, and the duration of the longest.
func evaluations(
	all []*gatewayv1.Evaluation, now time.Time, name func(string) string,
) (views []evaluationView, longest time.Duration) {
	for _, e := range all {
		longest = max(longest, e.GetDuration().AsDuration())
	}
	for _, e := range all {
		views = append(views, newEvaluation(e, longest, now, name))
	}
	return views, longest
}

func newEvaluation(
	e *gatewayv1.Evaluation, longest time.Duration, now time.Time, name func(string) string,
) evaluationView {
	ended := e.GetStartTime().AsTime().Add(e.GetDuration().AsDuration())
	v := evaluationView{
		ID: fmt.Sprintf("%s-%d", e.GetTraceId(), ended.UnixNano()), Function: cmp.Or(name(phase.Image(e)), rejected),
		Image: phase.Image(e), Where: cmp.Or(e.GetPod(), e.GetEvaluator()), Code: e.GetCode(),
		Class: classes[e.GetFault()], Took: phase.Took(e.GetDuration().AsDuration()), Ago: short(now.Sub(ended)),
		Time: ended.UTC().Format(time.RFC3339), TraceID: e.GetTraceId(), Cold: e.GetColdStart(), Attempts: e.GetAttempts(),
	}
	for _, p := range e.GetPhases() {
		v.Steps = append(v.Steps, stepView{
			Phase: p.GetName(), Took: phase.Took(p.GetDuration().AsDuration()), Reason: p.GetReason(),
			X: units(p.GetOffset().AsDuration(), longest), Width: max(units(p.GetDuration().AsDuration(), longest), 2),
		})
	}
	return v
}

// units returns the part d of a total in units of the bar.
func units(d, total time.Duration) int {
	return min(int(float64(d)/float64(max(total, 1))*barUnits), barUnits)
}

// short returns a long duration in its one or two largest units; a negative one is "0s".
func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Hour:
		return d.Truncate(time.Second).String()
	case d < 24*time.Hour:
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d/time.Hour%24)
	}
}
