// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"errors"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// TestInvalidListsAreNotEvaluated has a list that is not valid end the search for an evaluator, and be none's failure.
func TestInvalidListsAreNotEvaluated(t *testing.T) {
	var asked []string
	chain := evaluation.Chain{
		evaluation.Checked(answer{"sandbox", fault.New(fault.NotFound, "not mine"), &asked}),
		evaluation.Checked(answer{"pod", nil, &asked}),
	}
	for list, evaluator := range map[string]string{"kind: ResourceList": "pod", "kind: [": "", "": ""} {
		asked = nil
		resp, err := chain.Evaluate(t.Context(), evaluation.Request{Given: "fn:v1", ResourceList: []byte(list)})
		if resp.Evaluator != evaluator || (len(asked) == 0) != (evaluator == "") {
			t.Errorf("%q: %s evaluated, %v were asked, want %q", list, resp.Evaluator, asked, evaluator)
		}
		_, invalid := errors.AsType[*evaluation.InputError](err)
		if invalid != (evaluator == "") || invalid && fault.Of(err) != fault.Invalid {
			t.Errorf("%q: error %v", list, err)
		}
	}
}
