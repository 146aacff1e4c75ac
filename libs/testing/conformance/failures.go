// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// failure is a test case: a function that fails, and the expected error.
type failure struct {
	reason    string
	behaviour string
	// text is the expected message. In it, %[1]q stands for the image, and "…" for any text.
	text string
	kind functionrunnerv1.FunctionFailure_Reason
	// results is the expected number of results in the error's status detail.
	results int
}

func failureCases(texts Texts) []failure {
	return []failure{
		{"the function says what is wrong", "exit1", texts.Exit1, functionrunnerv1.FunctionFailure_REASON_EXITED, 1},
		{
			"it fails and leaves half an output", "exit1-garbage", texts.Exit1Garbage,
			functionrunnerv1.FunctionFailure_REASON_EXITED, 0,
		},
		{
			"exit 0 is not enough", "garbage",
			"failed to parse the output of function %[1]q with stderr 'all is well': …",
			functionrunnerv1.FunctionFailure_REASON_OUTPUT_INVALID, 0,
		},
		{
			"no output is no list", "empty", "failed to parse the output of function %[1]q with stderr '': …",
			functionrunnerv1.FunctionFailure_REASON_OUTPUT_INVALID, 0,
		},
		{"it is killed", "signal", texts.Signal, functionrunnerv1.FunctionFailure_REASON_SIGNALED, 0},
		{
			"its binary is not there", Missing, "Failed to execute function %[1]q: fork/exec …: no such file or directory ()",
			functionrunnerv1.FunctionFailure_REASON_NOT_STARTED, 0,
		},
		{
			"its binary may not be executed", NotExecutable,
			"Failed to execute function %[1]q: fork/exec …: permission denied (the file is not executable) ()",
			functionrunnerv1.FunctionFailure_REASON_NOT_STARTED, 0,
		},
	}
}

// Behaviours of functions whose binary cannot be started. Package testfn cannot provide them, so each implementation
// under test creates them in its own way.
const (
	// Missing is a function whose binary does not exist.
	Missing = "missing"
	// NotExecutable is a function whose binary has no permission to be executed.
	NotExecutable = "not-executable"
)

func testFailures(t *testing.T, target Target) {
	for _, f := range failureCases(target.Texts) {
		if f.text == "" {
			continue // this failure cannot occur with the target
		}
		t.Run(f.behaviour, func(t *testing.T) {
			fn := target.Serve(t, f.behaviour)
			for range 2 { // the server must still work after the first failure
				_, err := evaluateList(t, fn, List)
				st := status.Convert(err)
				if st.Code() != codes.Internal {
					t.Errorf("code %v, want Internal: %s", st.Code(), f.reason)
				}
				checkText(t, st.Message(), fmt.Sprintf(target.Texts.Prefix+f.text, fn.Image))
				checkDetail(t, st, fn, f)
				checkHealthy(t, fn)
			}
			checkOthers(t, target)
		})
	}
	t.Run("log that is not UTF-8", func(t *testing.T) { testUnreadableLog(t, target.Serve(t, "bad-utf8")) })
}

// testUnreadableLog tests a failed function whose log is not UTF-8. The error must contain the readable part of the
// log.
func testUnreadableLog(t *testing.T, fn Function) {
	_, err := evaluateList(t, fn, List)
	if st := status.Convert(err); st.Code() != codes.Internal || !strings.Contains(st.Message(), "broken: ") {
		t.Errorf("error %v, want the readable part of the log", err)
	}
}

func checkDetail(t *testing.T, st *status.Status, fn Function, f failure) {
	t.Helper()
	for _, d := range st.Details() {
		if detail, ok := d.(*functionrunnerv1.FunctionFailure); ok {
			if detail.GetReason() != f.kind || detail.GetImage() != fn.Image || len(detail.GetResults()) != f.results {
				t.Errorf("detail %v, want reason %v, image %s, %d results", detail, f.kind, fn.Image, f.results)
			}
			return
		}
	}
	t.Errorf("no FunctionFailure among the details %v", st.Details())
}
