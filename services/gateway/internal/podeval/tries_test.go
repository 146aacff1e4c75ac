// SPDX-License-Identifier: Apache-2.0

package podeval_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podeval"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// newQuickEvaluator returns an evaluator with a short time to connect.
func newQuickEvaluator(t *testing.T, m lease.Manager) *podeval.Evaluator {
	t.Helper()
	return newEvaluatorWith(t, m, telemetry.Discard(), 100*time.Millisecond)
}

// TestSamePodIsTriedUntilTheDeadline: the pod-manager grants the only pod again and again, since it
// answers there. It can be reached at the sixth attempt.
func TestSamePodIsTriedUntilTheDeadline(t *testing.T) {
	address := testpod.Serve(t, 1<<20, echo)
	m := leasetest.NewManager(pods(pod("a", refused), pod("a", refused), pod("a", refused), pod("a", refused),
		pod("a", refused), pod("a", address)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := newQuickEvaluator(t, m).Evaluate(ctx, request); err != nil {
		t.Error(err)
	}
}

// TestAttemptsEndWithTheDeadline also holds the text: one pod is not "3 pods".
func TestAttemptsEndWithTheDeadline(t *testing.T) {
	m := leasetest.NewManager(pods(pod("a", refused)))
	// On a busy machine, there may be no second attempt in a second.
	for timeout := time.Second; ; timeout *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		_, err := newQuickEvaluator(t, m).Evaluate(ctx, request)
		cancel()
		told := strings.Contains(err.Error(), "pod a broke: ") && strings.Contains(err.Error(), " times on this pod)")
		if fault.Of(err) != fault.DeadlineExceeded || (!told && timeout > time.Minute) {
			t.Fatalf("error %v of class %v", err, fault.Of(err))
		}
		if told {
			return
		}
	}
}

// TestPodThatBreaksUnderTheEvaluationCounts: it may be the evaluation that breaks it. Attempts that do not
// reach the pod, as on a busy machine, are no evaluations.
func TestPodThatBreaksUnderTheEvaluationCounts(t *testing.T) {
	var evaluated atomic.Int32
	address := testpod.Serve(t, 1<<20, func(context.Context, *evaluator.EvaluateFunctionRequest) (
		*evaluator.EvaluateFunctionResponse, error,
	) {
		evaluated.Add(1)
		return nil, fault.New(fault.Unimplemented, "this is not a wrapper server")
	})
	m := leasetest.NewManager(pods(pod("a", address)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := newQuickEvaluator(t, m).Evaluate(ctx, request)
	if n := evaluated.Load(); fault.Of(err) != fault.Unavailable || n != 3 ||
		!strings.Contains(err.Error(), " times on this pod)") {
		t.Errorf("after %d evaluations: %v", n, err)
	}
}
