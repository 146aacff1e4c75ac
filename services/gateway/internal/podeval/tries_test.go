// SPDX-License-Identifier: Apache-2.0

package podeval_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// TestSamePodIsTriedUntilTheDeadline: the pod-manager grants the only pod again and again, since it
// answers there. It can be reached at the sixth attempt.
func TestSamePodIsTriedUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		testpod.ServeAt(t, &network, "a:9446", 1<<20, echo)
		m := leasetest.NewManager(pods(pod("a", refused), pod("a", refused), pod("a", refused), pod("a", refused),
			pod("a", refused), pod("a", "a:9446")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := newEvaluatorIn(t, &network, m).Evaluate(ctx, newRequest()); err != nil {
			t.Error(err)
		}
	})
}

// TestAttemptsEndWithTheDeadline also holds the text: one pod is not "2 pods".
func TestAttemptsEndWithTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leasetest.NewManager(pods(pod("a", refused)))
		const inBackoff = connectTimeout/5 + connectTimeout + 50*time.Millisecond // after two attempts
		ctx, cancel := context.WithTimeout(t.Context(), inBackoff)
		defer cancel()
		_, err := newEvaluatorIn(t, new(pipenet.Network), m).Evaluate(ctx, newRequest())
		if fault.Of(err) != fault.DeadlineExceeded || !strings.Contains(err.Error(), "pod a broke: ") ||
			!strings.Contains(err.Error(), "(tried 2 times on this pod)") {
			t.Errorf("error %v of class %v", err, fault.Of(err))
		}
	})
}

// TestPodThatBreaksUnderTheEvaluationCounts: it may be the evaluation that breaks it.
func TestPodThatBreaksUnderTheEvaluationCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evaluated := 0
		var network pipenet.Network
		testpod.ServeAt(t, &network, "a:9446", 1<<20, func(context.Context, *evaluator.EvaluateFunctionRequest) (
			*evaluator.EvaluateFunctionResponse, error,
		) {
			evaluated++
			return nil, fault.New(fault.Unimplemented, "this is not a wrapper server")
		})
		m := leasetest.NewManager(pods(pod("a", "a:9446")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := newEvaluatorIn(t, &network, m).Evaluate(ctx, newRequest())
		if fault.Of(err) != fault.Unavailable || evaluated != 3 ||
			!strings.Contains(err.Error(), " times on this pod)") {
			t.Errorf("after %d evaluations: %v", evaluated, err)
		}
	})
}
