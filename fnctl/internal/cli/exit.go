// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

func exitCode(err error) int {
	failed, _ := errors.AsType[*pipeline.FunctionError](err)
	code, isCoded := command.Code(err)
	_, broken := errors.AsType[*pipeline.OutputError](err)
	switch {
	case err == nil:
		return command.ExitDone
	case isCoded:
		return code
	case errors.Is(err, context.Canceled):
		return command.ExitInterrupted
	case failed != nil && failed.Failure.GetReason() == functionrunnerv1.FunctionFailure_REASON_NOT_STARTED:
		return command.ExitOther
	case failed != nil || broken:
		return command.ExitFunction
	}
	return command.ExitOther
}

// summarizeError returns the error that fnctl prints last. The error may end with a note about the written files. If a
// function failed, the error omits the reason, because the progress display has already shown the reason.
func summarizeError(err error) error {
	written := "nothing was written"
	partly, isPartly := errors.AsType[*partlyWritten](err)
	if isPartly {
		written = partly.written
	}
	if failed, ok := errors.AsType[*pipeline.FunctionError](err); ok {
		return fmt.Errorf("function %q failed; %s", failed.Image, written)
	}
	call, isCall := errors.AsType[*client.CallError](err)
	switch {
	case isCall && isPartly:
		return &client.CallError{Problem: call.Problem + "; " + written, Advice: call.Advice, Trace: call.Trace}
	case isPartly:
		return fmt.Errorf("%w; %s", partly.error, written)
	}
	return err
}

// errorLines returns the reason, the remedy and the trace id that fnctl prints for an error. It returns nothing for
// an error without a text.
func errorLines(err error) []string {
	if err == nil || err.Error() == "" {
		return nil
	}
	err = summarizeError(err)
	call, ok := errors.AsType[*client.CallError](err)
	if !ok {
		return []string{err.Error()}
	}
	all := []string{strings.Replace(err.Error(), call.Error(), call.Problem, 1)}
	if call.Advice != "" {
		all = append(all, call.Advice)
	}
	if call.Trace != "" {
		all = append(all, "trace "+call.Trace)
	}
	return all
}
