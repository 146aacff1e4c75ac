// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// answer is an evaluator that answers with an error or its name.
type answer struct {
	name  string
	err   error
	asked *[]string
}

func (a answer) Name() string { return a.name }

func (a answer) Evaluate(context.Context, evaluation.Request) (evaluation.Response, error) {
	*a.asked = append(*a.asked, a.name)
	return evaluation.Response{Log: []byte(a.name)}, a.err
}

func TestChain(t *testing.T) {
	notServed := fault.New(fault.NotFound, "not mine")
	broken := errors.New("broken")
	tests := map[string]struct {
		reason    string
		exec, pod error
		asked     string
		class     fault.Class
		evaluator string
	}{
		"first":   {reason: "the first that serves the image answers", asked: "exec", evaluator: "exec"},
		"second":  {reason: "not served means: ask the next", exec: notServed, asked: "exec pod", evaluator: "pod"},
		"failure": {reason: "any other error is the answer", exec: broken, asked: "exec", class: fault.Internal},
		"unavailable": {
			reason: "so is one that may go away",
			exec:   fault.New(fault.Unavailable, "x"), asked: "exec", class: fault.Unavailable,
		},
		"precondition":  {reason: "", exec: fault.New(fault.Precondition, "x"), asked: "exec", class: fault.Precondition},
		"invalid":       {reason: "", exec: fault.New(fault.Invalid, "x"), asked: "exec", class: fault.Invalid},
		"denied":        {reason: "", exec: fault.New(fault.Denied, "x"), asked: "exec", class: fault.Denied},
		"exhausted":     {reason: "", exec: fault.New(fault.Exhausted, "x"), asked: "exec", class: fault.Exhausted},
		"deadline":      {reason: "", exec: context.DeadlineExceeded, asked: "exec", class: fault.DeadlineExceeded},
		"canceled":      {reason: "", exec: context.Canceled, asked: "exec", class: fault.Canceled},
		"unimplemented": {reason: "", exec: fault.New(fault.Unimplemented, "x"), asked: "exec", class: fault.Unimplemented},
		"second too": {
			reason: "the last one's error is the answer",
			exec:   notServed, pod: broken, asked: "exec pod", class: fault.Internal,
		},
		"none": {
			reason: "no evaluator serves it",
			exec:   notServed, pod: notServed, asked: "exec pod", class: fault.NotFound,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			chain := evaluation.Chain{answer{"exec", tc.exec, &asked}, answer{"pod", tc.pod, &asked}}
			resp, err := chain.Evaluate(t.Context(), evaluation.Request{Given: "fn"})
			if got := strings.Join(asked, " "); got != tc.asked {
				t.Errorf("asked %q, want %q: %s", got, tc.asked, tc.reason)
			}
			if (err == nil) != (tc.evaluator != "") || (err != nil && fault.Of(err) != tc.class) {
				t.Errorf("error %v, want class %v: %s", err, tc.class, tc.reason)
			}
			if err == nil && resp.Evaluator != tc.evaluator {
				t.Errorf("answered by %q, want %q", resp.Evaluator, tc.evaluator)
			}
		})
	}
}

func TestNotFoundSaysWhoWasAsked(t *testing.T) {
	var asked []string
	notServed := fault.New(fault.NotFound, "not mine")
	for want, chain := range map[string]evaluation.Chain{
		"(asked: exec, pod)":              {answer{"exec", notServed, &asked}, answer{"pod", notServed, &asked}},
		"(asked: none, all are disabled)": {},
	} {
		_, err := chain.Evaluate(t.Context(), evaluation.Request{
			Given: "fn", Image: imagename.Name{Repository: "r/fn", Tag: "v1"},
		})
		if err == nil || !strings.HasPrefix(err.Error(), `function "fn" not found`) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that ends in %q", err, want)
		}
	}
}
