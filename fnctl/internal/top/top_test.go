// SPDX-License-Identifier: Apache-2.0

package top_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/top"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

var now = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

func snapshot() top.Snapshot {
	return top.Snapshot{
		Now: now,
		Status: &gatewayv1.GetStatusResponse{
			Replica: "gateway-0", Version: "v1", StartTime: timestamppb.New(now.Add(-time.Hour)),
			Active: map[string]int32{"run": 3, "queue": 12}, Problems: []string{"12 evaluations wait"},
			Waiting: []*gatewayv1.GetStatusResponse_Waiting{
				{
					Image: "example.com/fns/set-namespace:v0.4.5", Phase: "queue", Count: 12,
					Longest: durationpb.New(65 * time.Second), Reason: "all 3 pods of the function\nare busy",
				},
				{Image: "a:v1", Phase: "resolve", Count: 1},
			},
			Functions: []*gatewayv1.GetStatusResponse_Function{
				{
					Image: "set-namespace:v0.4.5", Rate: 123.4, FailedRate: .617, Samples: 200,
					Median: durationpb.New(3456 * time.Microsecond), P99: durationpb.New(1234 * time.Millisecond),
				},
				{
					Image: "rare:v1", Rate: 0.05, Samples: 3,
					Median: durationpb.New(2 * time.Minute), P99: durationpb.New(2 * time.Minute),
				},
			},
		},
		Pools: []*podmanagerv1.Pool{{
			Key: &podmanagerv1.PoolKey{Reference: "example.com/fns/slow-with-a-very-long-name-of-a-function:v1"}, Waiting: 7,
			LastFailure: "no node takes it",
			Pods:        []*podmanagerv1.Pod{{State: podmanagerv1.Pod_STATE_READY}, {State: podmanagerv1.Pod_STATE_STARTING}},
		}},
		Failures: []*gatewayv1.Evaluation{
			{
				Image: "a.example/typo:v1", Code: "failed_precondition", Fault: "caller",
				StartTime: timestamppb.New(now.Add(-5 * time.Second)),
				Reason:    "the registry says: no such image, and that in more words than\none line of the terminal has",
			},
			unavailable(9), unavailable(10), unavailable(11),
		},
	}
}

// unavailable returns a failure of the system some seconds ago.
func unavailable(seconds int) *gatewayv1.Evaluation {
	return &gatewayv1.Evaluation{
		Image: "typo:v1", Resolved: "b.example/typo:v1", Code: "unavailable", Fault: "system",
		StartTime: timestamppb.New(now.Add(-time.Duration(seconds) * time.Second)), Reason: "no pod-manager answers",
	}
}

func TestTop(t *testing.T) {
	want := `gateway gateway-0, version v1, up 1h0m
here, last minute: 123 evals/s, 1 of 203 failed; now: 12 queue, 3 run
! 12 evaluations wait
! 1 of 1 functions cannot get a pod: slow-with-a-very-long-name-of-a-function:…

WAITING HERE
    12  set-namespace:v0.4.5  queue for 1m5s: all 3 pods of the function are b…
     1  a:v1  resolve for 0s

LAST FAILURES HERE
     3  b.example/typo:v1  system: unavailable: no pod-manager answers (9s ago)
     1  a.example/typo:v1  caller: failed_precondition: the registry says: no …

FUNCTION                    EVALS/S      FAILED      P50      P99   PODS  QUEUE
slow-with-a-very-long-nam…        -           -        -        -    1/2      7
set-namespace:v0.4.5            123    1 of 200   3.46ms   1.234s      -      -
rare:v1                        0.05      0 of 3     2m0s     2m0s      -      -`
	if diff := cmp.Diff(want, strings.Join(snapshot().Lines(80, 0), "\n")); diff != "" {
		t.Errorf("top (-want +got):\n%s", diff)
	}
}

// TestTopFitsTheTerminal shows hundreds of functions, and names in wide characters, on small terminals.
func TestTopFitsTheTerminal(t *testing.T) {
	s := snapshot()
	for i := range 300 {
		s.Status.Functions = append(s.Status.Functions, &gatewayv1.GetStatusResponse_Function{
			Image: fmt.Sprintf("関数の名前がとても長い-%d\x1b[31m", i), Rate: 1, Median: durationpb.New(time.Second),
		})
		s.Status.Waiting = append(s.Status.Waiting, &gatewayv1.GetStatusResponse_Waiting{
			Image: "関数", Phase: "queue", Reason: strings.Repeat("長い", 100), Count: int32(i),
		})
	}
	s.Problems = []string{strings.Repeat("the pods are not known\n", 10)}
	for _, size := range [][2]int{{80, 24}, {66, 10}, {200, 50}} {
		lines := s.Lines(size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%d lines on a terminal of %d", len(lines), size[1])
		}
		for _, line := range lines {
			if n := runewidth.StringWidth(line); n >= size[0] || strings.ContainsRune(line, '\x1b') {
				t.Errorf("%d columns on a terminal of %d: %q", n, size[0], line)
			}
		}
	}
}
