// SPDX-License-Identifier: Apache-2.0

package function

import (
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// maxDetail is how many bytes of another process's detail are passed on.
const maxDetail = 16 << 10

// Received returns a failure that another process put into words and sent with
// detail, which is passed on as it is unless it is too large. Of its results the failure
// has texts and severities.
func Received(message string, detail *functionrunnerv1.FunctionFailure) *Failure {
	detail = bounded(detail)
	f := &Failure{
		Image:    detail.GetImage(),
		Reason:   detail.GetReason(),
		ExitCode: int(detail.GetExitCode()),
		Signal:   excerpt.Middle(detail.GetSignal(), maxSignalBytes),
		Stderr:   detail.GetStderr(),
		message:  message,
		received: detail,
	}
	for _, r := range detail.GetResults() {
		f.Results = append(f.Results, resourcelist.Result{Message: r.GetMessage(), Severity: r.GetSeverity()})
	}
	return f
}

// bounded returns a detail if it fits into a header, else what fits of its known fields.
func bounded(detail *functionrunnerv1.FunctionFailure) *functionrunnerv1.FunctionFailure {
	if proto.Size(detail) <= maxDetail {
		return detail
	}
	results := detail.GetResults()
	kept := fitting(len(results), func(i int) *functionrunnerv1.Result { return results[i] })
	return &functionrunnerv1.FunctionFailure{
		Image:          excerpt.Middle(detail.GetImage(), maxImageBytes),
		Reason:         detail.GetReason(),
		ExitCode:       detail.GetExitCode(),
		Signal:         excerpt.Middle(detail.GetSignal(), maxSignalBytes),
		Stderr:         excerpt.Middle(detail.GetStderr(), maxDetailStderr),
		Results:        kept,
		ResultsOmitted: detail.GetResultsOmitted() + int32(len(results)-len(kept)), //nolint:gosec // of one header
	}
}

// maxSignalBytes is more than the name of any signal has.
const maxSignalBytes = 64
