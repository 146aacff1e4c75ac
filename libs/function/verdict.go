// SPDX-License-Identifier: Apache-2.0

package function

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// Result is the output of a function that exited with code 0. Its Results may still have the severity "error".
type Result struct {
	// ResourceList contains the bytes that the function wrote to stdout.
	ResourceList []byte
	// Log contains the bytes that the function wrote to stderr.
	Log []byte
	// Results contains the results in the function's resource list.
	Results []resourcelist.Result
}

// CheckInput returns an error of class fault.Invalid if list is not a valid input. If ctx is canceled first, the error
// has the class of ctx's error.
func CheckInput(ctx context.Context, image string, list []byte) error {
	if len(list) == 0 {
		return fault.New(fault.Invalid, "no resource list given: the function's input is empty")
	}
	start := time.Now()
	_, err := resourcelist.Parse(ctx, list)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, resourcelist.ErrNotUTF8):
		return fault.New(fault.Invalid, "the resource list is not UTF-8")
	case errors.Is(err, ctx.Err()):
		return Interrupted(ContextErr(ctx), image, time.Since(start), "the resource list waited to be read")
	default:
		return fault.New(fault.Invalid, "the resource list is not valid: %w", err)
	}
}

// conclude turns the outcome of the function's process into the result or the error of an evaluation. Took is the
// duration of the run.
func (s *Service) conclude(
	ctx context.Context, image string, out fnproc.Outcome, err error, took time.Duration,
) (Result, error) {
	log := s.flattenLog(out.Log)
	if stopped, ok := errors.AsType[*fnproc.StoppedError](err); ok {
		doing := "the function was running"
		if stopped.OutputHeld {
			doing = "the function had exited, but a process that it started still held its output (have the function " +
				"wait for it, or redirect the output of what stays behind)"
		}
		return Result{}, Interrupted(stopped, image, took, doing)
	}
	failure := Failure{Image: image, Status: out.Status, ExitCode: out.ExitCode, Stderr: string(log)}
	if err != nil {
		return Result{}, s.platformFailure(failure, err)
	}
	results, parseErr := resourcelist.Parse(ctx, out.Output)
	failure.Results = results
	switch {
	case parseErr != nil && errors.Is(parseErr, ctx.Err()):
		return Result{}, Interrupted(ContextErr(ctx), image, took, "what the function wrote waited to be read")
	case out.Signal != 0:
		failure.Signal = out.Signal.String()
		if failure.SignalCause = s.explainKill(out); failure.SignalCause != "" {
			failure.Status += " (" + failure.SignalCause + ")" // as in Porch
		}
		return Result{}, s.fail(failure, Signaled, parseErr)
	case out.ExitCode != 0:
		return Result{}, s.fail(failure, Exited, parseErr)
	case parseErr != nil && !s.cfg.AnyOutput:
		return Result{}, s.fail(failure, OutputInvalid, parseErr)
	}
	return Result{ResourceList: out.Output, Log: s.fitLog(out.Output, log), Results: results}, nil
}

// explainKill returns the cause of a SIGKILL and the remedy. It returns an empty string if the cause is unknown.
func (s *Service) explainKill(out fnproc.Outcome) string {
	if out.Signal != syscall.SIGKILL {
		return ""
	}
	switch {
	case out.OutOfMemory:
		return s.kills.Text()
	case out.OutOfProcesses:
		return "too many processes: its container can start almost no more, and most of them are the function's: have it " +
			"start fewer at once, or raise the container's limit of processes"
	default:
		return s.kills.Explain()
	}
}

// platformFailure returns the error for a function that could not run, or that was killed because it exceeded a limit.
func (s *Service) platformFailure(failure Failure, err error) error {
	if _, ok := errors.AsType[*fnproc.LimitError](err); ok {
		return s.fail(failure, OutputTooLarge, err)
	}
	if _, ok := errors.AsType[*fnproc.LaunchError](err); ok { // the function was never started
		return fmt.Errorf(launchPrefix+"%w", failure.Image, err)
	}
	return s.fail(failure, NotStarted, err)
}

// flattenLog joins the lines of a log into a single line if FlattenLog is set in the configuration.
func (s *Service) flattenLog(log []byte) []byte {
	if !s.cfg.FlattenLog {
		return log
	}
	return bytes.ReplaceAll(bytes.TrimRight(log, "\n"), []byte("\n"), []byte(" | "))
}

// fitLog returns a function's log. It removes the middle of the log if the response would otherwise be too large.
func (s *Service) fitLog(output, log []byte) []byte {
	const note = 64
	left := s.cfg.MaxMessageBytes - framing - len(output)
	if len(log) <= left {
		return log
	}
	if left < note {
		return nil
	}
	return []byte(excerpt.Middle(string(log), left-note))
}

// Interrupted returns the error for an evaluation whose context was canceled because of cause. The argument took is the
// time from the start to the cancellation, and doing describes the evaluation's state at the cancellation. After a
// deadline, the error has the same text as in Porch, so that users recognize it. If our own time limit was exceeded,
// the error is a [*Failure]. Other services then know that it was not their deadline.
func Interrupted(cause error, image string, took time.Duration, doing string) error {
	took = took.Round(time.Millisecond)
	if fault.Of(cause) == fault.DeadlineExceeded {
		err := fmt.Errorf("function evaluation timed out for %s: after %v, %s: %w", image, took, doing, cause)
		if _, ok := errors.AsType[*TimeLimitError](cause); ok {
			err = &Failure{Image: image, Reason: TimedOut, message: err.Error(), cause: cause}
		}
		return fault.New(fault.DeadlineExceeded, "%w", err)
	}
	return fault.New(fault.Canceled, NamePrefix+"the caller left after %v, %s: %w", image, took, doing, cause)
}
