// SPDX-License-Identifier: Apache-2.0

package evalhandler

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

func TestFailuresAreDueToOneParty(t *testing.T) {
	exited := &function.Failure{Reason: function.Exited, ExitCode: 1}
	for name, tc := range map[string]struct {
		err         error
		label, want string
	}{
		"none":                         {nil, "fn:v1", ""},
		"exit code":                    {fmt.Errorf("evaluate: %w", exited), "fn:v1", "function"},
		"too slow":                     {&function.Failure{Reason: function.TimedOut}, "fn:v1", "function"},
		"not started":                  {&function.Failure{Reason: function.NotStarted}, "fn:v1", "system"},
		"answer dropped":               {&droppedError{fault.New(fault.Exhausted, "no memory")}, "fn:v1", "system"},
		"bad list":                     {fault.New(fault.Invalid, "no list"), "fn:v1", "caller"},
		"no evaluator":                 {fault.New(fault.NotFound, "no evaluator"), imagename.OtherImages, "caller"},
		"policy":                       {fault.New(fault.Denied, "not permitted"), imagename.OtherImages, "caller"},
		"caller left":                  {context.Canceled, "fn:v1", "caller"},
		"misspelt image":               {fault.New(fault.Precondition, "no such image"), imagename.OtherImages, "caller"},
		"image that was there before":  {fault.New(fault.Precondition, "no such image"), "fn:v1", "system"},
		"rejected request, bad header": {fault.New(fault.Invalid, "no message"), "", "caller"},
		"full queue":                   {fault.New(fault.Exhausted, "queue full"), "fn:v1", "system"},
		"no pod-manager":               {fault.New(fault.Unavailable, "nobody answers"), imagename.OtherImages, "system"},
		"deadline":                     {context.DeadlineExceeded, "fn:v1", "system"},
		"defect":                       {errors.New("nil pointer"), "fn:v1", "system"},
	} {
		if got := partyOf(tc.err, tc.label); got != tc.want {
			t.Errorf("%s: a failure of the %q, want %q", name, got, tc.want)
		}
	}
}
