// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// The exit codes. Scripts rely on them.
const (
	exitDone     = 0
	exitFunction = 1
	exitOther    = 2
	// exitChanges is the exit code of fnctl render --check if a render would change files.
	exitChanges = 3
	// exitInterrupted is the exit code after Ctrl-C. As in shells, it is 128 plus the number of SIGINT.
	exitInterrupted = 130
)

// usageError reports an invalid command line.
type usageError struct {
	command string
	err     error
}

func (e usageError) Error() string {
	return fmt.Sprintf("%v (see %s --help)", e.err, e.command)
}

// codedError is an error with its own exit code, such as exitChanges. If err is nil, fnctl prints no message.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

func exitCode(err error) int {
	failed, _ := errors.AsType[*client.FunctionError](err)
	coded, _ := errors.AsType[*codedError](err)
	_, broken := errors.AsType[*pipeline.OutputError](err)
	switch {
	case err == nil:
		return exitDone
	case coded != nil:
		return coded.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case failed != nil && failed.Failure.GetReason() == functionrunnerv1.FunctionFailure_REASON_NOT_STARTED:
		return exitOther
	case failed != nil || broken:
		return exitFunction
	}
	return exitOther
}

// summarizeError returns the error that fnctl prints last, with a note about written files. It omits the reason of
// a failed function, because the progress display has already shown the reason.
func summarizeError(err error) error {
	written := "nothing was written"
	partly, isPartly := errors.AsType[*partlyWritten](err)
	if isPartly {
		written = partly.written
	}
	if failed, ok := errors.AsType[*client.FunctionError](err); ok {
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
