// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/phase"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/history"
)

// view is what the page shows, as texts. The template escapes them.
type view struct {
	Replica, Version, Up string
	Active               []string
	// Problem is why the pools are not known.
	Problem     string
	Functions   []functionView
	Waiting     []waitingView
	Pools       []poolView
	Evaluations []evaluationView
	Failures    []evaluationView
}

type functionView struct{ Image, Rate, Failed, Median, P99 string }

type waitingView struct {
	Function, Image, Phase, For, Reason string
	Count                               int32
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
	Function, Image, Where, Code, Reason, Took, Ago, Time, TraceID string
	Cold, Failed                                                   bool
	Steps                                                          []stepView
	Attempts                                                       int32
}

// stepView is a phase, with its place in a bar of 1000 units.
type stepView struct {
	Phase, Took, Reason string
	X, Width            int
}

func functions(all []*gatewayv1.GetStatusResponse_Function) []functionView {
	views := make([]functionView, len(all))
	for i, f := range all {
		views[i] = functionView{
			f.GetImage(), fmt.Sprintf("%.2f", f.GetRate()), fmt.Sprintf("%.2f", f.GetFailedRate()),
			phase.Took(f.GetMedian().AsDuration()), phase.Took(f.GetP99().AsDuration()),
		}
	}
	return views
}

func waiting(all []*gatewayv1.GetStatusResponse_Waiting) []waitingView {
	views := make([]waitingView, len(all))
	for i, w := range all {
		views[i] = waitingView{
			Function: path.Base(w.GetImage()), Image: w.GetImage(), Phase: w.GetPhase(),
			For: short(w.GetLongest().AsDuration()), Reason: w.GetReason(), Count: w.GetCount(),
		}
	}
	return views
}

// states are the states of pods, and the classes of the style sheet for them.
var states = map[podmanagerv1.Pod_State][2]string{
	podmanagerv1.Pod_STATE_STARTING: {"starting", "busy"},
	podmanagerv1.Pod_STATE_READY:    {"ready", "good"},
	podmanagerv1.Pod_STATE_DRAINING: {"draining", "faint"},
	podmanagerv1.Pod_STATE_FAILED:   {"failed", "bad"},
	podmanagerv1.Pod_STATE_DELETING: {"deleting", "faint"},
}

func newPool(p *podmanagerv1.Pool, now time.Time) poolView {
	reference := p.GetKey().GetReference()
	v := poolView{
		Name: path.Base(reference), Reference: reference, Digest: p.GetKey().GetDigest(),
		Waiting: int(p.GetWaiting()), Active: p.GetActive(), Pods: len(p.GetPods()), Failure: p.GetLastFailure(),
	}
	for _, pod := range p.GetPods() {
		if pod.GetState() == podmanagerv1.Pod_STATE_READY {
			v.Ready++
		}
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

// barUnits is the width of the bar of an evaluation.
const barUnits = 1000

func newEvaluation(e *gatewayv1.Evaluation, now time.Time) evaluationView {
	total := e.GetDuration().AsDuration()
	ended := e.GetStartTime().AsTime().Add(total)
	v := evaluationView{
		Function: "(rejected)", Image: cmp.Or(e.GetResolved(), e.GetImage()),
		Where: cmp.Or(e.GetPod(), e.GetEvaluator()), Code: e.GetCode(), Reason: e.GetReason(), Took: phase.Took(total),
		Ago: short(now.Sub(ended)), Time: ended.UTC().Format(time.RFC3339), TraceID: e.GetTraceId(),
		Cold: e.GetColdStart(), Failed: e.GetCode() != history.OK, Attempts: e.GetAttempts(),
	}
	if v.Image != "" {
		v.Function = path.Base(v.Image)
	}
	for _, p := range e.GetPhases() {
		v.Steps = append(v.Steps, stepView{
			Phase: p.GetName(), Took: phase.Took(p.GetDuration().AsDuration()), Reason: p.GetReason(),
			X: units(p.GetOffset().AsDuration(), total), Width: max(units(p.GetDuration().AsDuration(), total), 1),
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
