// SPDX-License-Identifier: Apache-2.0

package evalhistory_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
)

// begun is when the evaluations of the tests begin.
var begun = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// ended returns an evaluation that took d, and ended some time after begun.
func ended(id string, after, d time.Duration, code string) *gatewayv1.Evaluation {
	return &gatewayv1.Evaluation{
		TraceId: id, Code: code, StartTime: timestamppb.New(begun.Add(after - d)), Duration: durationpb.New(d),
	}
}

func ids(evaluations []*gatewayv1.Evaluation) string {
	all := make([]string, len(evaluations))
	for i, e := range evaluations {
		all[i] = e.GetTraceId()
	}
	return strings.Join(all, " ")
}

func TestEvaluationsAreFound(t *testing.T) {
	h := evalhistory.New()
	for i, code := range []string{"ok", "unavailable", "ok", "internal"} {
		h.Add("fn:v1", ended(strconv.Itoa(i), 0, 0, code))
	}
	tests := map[string]struct {
		selected evalhistory.Select
		want     string
	}{
		"all, the newest first": {evalhistory.Select{}, "3 2 1 0"},
		"some":                  {evalhistory.Select{Max: 2}, "3 2"},
		"failed":                {evalhistory.Select{Failed: true}, "3 1"},
		"one failed":            {evalhistory.Select{Failed: true, Max: 1}, "3"},
		"one trace":             {evalhistory.Select{TraceID: "2"}, "2"},
		"no trace":              {evalhistory.Select{TraceID: "9"}, ""},
	}
	for name, tc := range tests {
		if got := ids(h.Evaluations(tc.selected)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestSuccessesDoNotHideFailures finds an evaluation that failed before thousands that succeeded.
func TestSuccessesDoNotHideFailures(t *testing.T) {
	h := evalhistory.New()
	h.Add("fn:v1", ended("failed", 0, 0, "unavailable"))
	for i := range 5000 {
		h.Add("fn:v1", ended(strconv.Itoa(i), 0, 0, "ok"))
	}
	for _, selected := range []evalhistory.Select{{Failed: true}, {TraceID: "failed"}} {
		if got := ids(h.Evaluations(selected)); got != "failed" {
			t.Errorf("%+v: %q", selected, got)
		}
	}
	if got := ids(h.Evaluations(evalhistory.Select{Max: 1})); got != "4999" {
		t.Errorf("the newest is %q", got)
	}
}

// TestHistoryIsBounded adds the largest evaluations that there may be, with texts that are not UTF-8.
func TestHistoryIsBounded(t *testing.T) {
	h := evalhistory.New()
	long := strings.Repeat("\xff€", 100_000)
	for range 2000 {
		e := ended(long, 0, 0, long)
		e.Image, e.Resolved, e.Evaluator, e.Reason, e.Severity, e.Pod = long, long, long, long, long, long
		for range 32 {
			e.Phases = append(e.Phases, &gatewayv1.EvaluationPhase{Name: "queue", Reason: long})
		}
		h.Add("fn:v1", e)
	}
	all := h.Evaluations(evalhistory.Select{})
	data, err := proto.Marshal(&gatewayv1.ListEvaluationsResponse{Evaluations: all})
	if err != nil {
		t.Fatal(err)
	}
	const maxBytes = 8 << 20
	if len(all) != 512 || len(data) > maxBytes {
		t.Errorf("%d evaluations with %d bytes, want 512 with at most %d", len(all), len(data), maxBytes)
	}
}

func TestFunctionsOfTheLastMinute(t *testing.T) {
	h := evalhistory.New()
	h.Add("old:v1", ended("", -61*time.Second, 0, "ok"))
	h.Add("", ended("", 0, 0, "resource_exhausted")) // of no function
	for i := range 60 {
		code := "ok"
		if i%4 == 0 {
			code = "internal"
		}
		h.Add("slow:v1", ended("", -30*time.Second, time.Duration(i+1)*time.Second, code))
	}
	for i := range 1000 { // 100 each second
		h.Add("busy:v1", ended("", time.Duration(i-1000)*10*time.Millisecond, time.Millisecond, "ok"))
	}
	got := map[string]*gatewayv1.GetStatusResponse_Function{}
	for _, f := range h.Functions(begun) {
		got[f.GetImage()] = f
	}
	slow, busy := got["slow:v1"], got["busy:v1"]
	if len(got) != 2 || slow.GetRate() != 1 || slow.GetFailedRate() != .25 || slow.GetSamples() != 60 ||
		slow.GetMedian().AsDuration() != 31*time.Second || slow.GetP99().AsDuration() != time.Minute {
		t.Errorf("functions %v", got)
	}
	if rate := busy.GetRate(); rate < 99 || rate > 101 {
		t.Errorf("rate of a busy function is %v, want about 100", rate)
	}
}

func TestHistoryIsSafeForConcurrentUse(*testing.T) {
	h := evalhistory.New()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 500 {
				h.Add("fn:v1", ended("", 0, 0, "ok"))
				h.Functions(begun)
				h.Evaluations(evalhistory.Select{Max: 3})
			}
		})
	}
	running.Wait()
}
