package function

import (
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// Received returns a failure that another process put into words and sent with
// detail, which is passed on as it is. Of its results it has texts and severities.
func Received(message string, detail *functionrunnerv1.FunctionFailure) *Failure {
	f := &Failure{
		Image:    detail.GetImage(),
		Reason:   detail.GetReason(),
		ExitCode: int(detail.GetExitCode()),
		Signal:   detail.GetSignal(),
		Stderr:   detail.GetStderr(),
		message:  message,
		received: detail,
	}
	for _, r := range detail.GetResults() {
		f.Results = append(f.Results, resourcelist.Result{Message: r.GetMessage(), Severity: r.GetSeverity()})
	}
	return f
}
