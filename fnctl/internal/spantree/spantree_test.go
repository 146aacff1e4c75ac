// SPDX-License-Identifier: Apache-2.0

package spantree_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/spantree"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

// phases returns phases of a second each, all of them of one attempt.
func phases(from time.Duration, attempt int32, names ...string) []*gatewayv1.EvaluationPhase {
	var all []*gatewayv1.EvaluationPhase
	for i, name := range names {
		all = append(all, &gatewayv1.EvaluationPhase{
			Name: name, Attempt: attempt, Offset: durationpb.New(from + time.Duration(i)*time.Second),
			Duration: durationpb.New(time.Second),
		})
	}
	return all
}

func coldStart() spantree.Call {
	e := &gatewayv1.Evaluation{
		Evaluator: "pod", Pod: "fn-1", ColdStart: true, Code: "ok", Attempts: 1, Duration: durationpb.New(7 * time.Second),
		Phases: append(phases(0, 0, "resolve"),
			phases(time.Second, 1, "queue", "create", "schedule", "pull", "start", "run")...),
	}
	e.Phases[4].Reason = "Pulling image, which takes longer than this line of eighty columns can say"
	return spantree.Call{
		Function: "set-labels:v1", TraceID: strings.Repeat("ab", 16), Took: 8 * time.Second, Evaluation: e,
	}
}

func TestColdStart(t *testing.T) {
	want := `Trace abababababababababababababababab
  set-labels:v1
  pod, fn-1, cold start
  call                    8s  ████████████████████████
  └ gateway               7s  ··█████████████████████·
    ├ resolve             1s  ··███···················
    ├ queue               1s  ·····███················
    ├ create              1s  ········███·············
    ├ schedule            1s  ···········███··········
    ├ pull                1s  ··············███·······  Pulling image, which t…
    ├ start               1s  ·················███····
    └ run                 1s  ····················███·`
	got := strings.Join(coldStart().Lines(80), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n >= 80 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
}

func TestAttemptsAreSpans(t *testing.T) {
	call := coldStart()
	call.Evaluation.Attempts = 2
	call.Evaluation.Phases = append(phases(0, 1, "queue", "run"), phases(2*time.Second, 2, "queue", "run")...)
	got := strings.Join(call.Lines(0), "\n")
	for _, want := range []string{
		"├ attempt 1           2s", "│ ├ queue", "│ └ run", "└ attempt 2           2s", "  ├ queue",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("tree lacks %q:\n%s", want, got)
		}
	}
}

func TestNothingFound(t *testing.T) {
	got := strings.Join(spantree.Call{Function: "fn", TraceID: "1", Missing: "it is older"}.Lines(80), "\n")
	if !strings.Contains(got, "no spans: it is older") {
		t.Errorf("got\n%s", got)
	}
}
