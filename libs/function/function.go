// SPDX-License-Identifier: Apache-2.0

// Package function runs KRM functions as local processes and judges what they did:
// whether they succeeded, and if not, which error the caller gets.
package function

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// Result is what a function that succeeded wrote. Results may be of severity
// error all the same: the exit code decides.
type Result struct {
	// ResourceList is its output, byte for byte.
	ResourceList []byte
	// Log is what it wrote to stderr.
	Log []byte
	// Results are the results in the list.
	Results []resourcelist.Result
}

// Runner runs functions.
type Runner struct {
	// Processes runs their processes.
	Processes fnproc.Runner
	// Limits bound what they write.
	Limits Limits
	// Wording is how failures are put into words.
	Wording Wording
	// FlattenLog puts logs, in results and in failures, on one line each.
	FlattenLog bool
	// Memory explains which killed functions ran out of memory; nil explains none.
	Memory *cgroup.Kills
	// Tracer makes a span for each run.
	Tracer trace.Tracer
	// Preforks, if not nil, counts runs of functions that are kept started.
	Preforks *Preforks
}

// maxImageBytes is imagename's bound. What is longer must not get into texts and headers,
// though a wrapper server has no other use for the name.
const maxImageBytes = 1 << 10

// CheckInput returns an error of class fault.Invalid if list is not a valid input or the image name
// is too long. If ctx ends first, the error has the class of ctx.
func CheckInput(ctx context.Context, image string, list []byte) error {
	if len(image) > maxImageBytes {
		return fault.New(fault.Invalid, "the image's name has %d bytes, and may have up to %d", len(image), maxImageBytes)
	}
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

// Run runs cmd, the function of image, over list. The limits of cmd are set from
// the runner's own. A function that fails gives a [*Failure] in the error's chain;
// one that was stopped because ctx ended gives an error with the context's class.
func (r *Runner) Run(ctx context.Context, image string, cmd fnproc.Command, list []byte) (Result, error) {
	path := attribute.String("process.executable.path", cmd.Path)
	ctx, span := r.Tracer.Start(ctx, "fn.exec", trace.WithAttributes(path))
	defer span.End()
	start := time.Now()
	out, err := r.Processes.Run(ctx, r.limited(cmd), list)
	span.SetAttributes(
		attribute.Int("process.exit.code", out.ExitCode), attribute.String("fn.prefork", out.Prefork.String()))
	r.Preforks.count(ctx, cmd, out.Prefork)
	result, err := r.conclude(ctx, image, out, err, time.Since(start))
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
	}
	return result, err
}

// Prepare has processes of cmd started before its first run, if any are to be kept of
// it.
func (r *Runner) Prepare(cmd fnproc.Command) { r.Processes.Prepare(r.limited(cmd)) }

// limited returns cmd with the runner's limits.
func (r *Runner) limited(cmd fnproc.Command) fnproc.Command {
	cmd.MaxOutput, cmd.MaxLog = r.Limits.output(), r.Limits.log()
	return cmd
}

// conclude turns the end of a process, after the given time, into a result or an
// error.
func (r *Runner) conclude(
	ctx context.Context, image string, out fnproc.Outcome, err error, took time.Duration,
) (Result, error) {
	log := r.flatten(out.Log)
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
		return Result{}, r.platformFailure(failure, err)
	}
	envelope, parseErr := resourcelist.Parse(ctx, out.Output)
	failure.Results = envelope.Results
	switch {
	case parseErr != nil && errors.Is(parseErr, ctx.Err()):
		return Result{}, Interrupted(ContextErr(ctx), image, took, "what the function wrote waited to be read")
	case out.Signal != 0:
		failure.Signal = out.Signal.String()
		failure.Status += r.killer(out)
		return Result{}, r.fail(failure, Signaled, parseErr)
	case out.ExitCode != 0:
		return Result{}, r.fail(failure, Exited, parseErr)
	case parseErr != nil:
		return Result{}, r.fail(failure, OutputInvalid, parseErr)
	}
	return Result{ResourceList: out.Output, Log: r.Limits.fit(out.Output, log), Results: envelope.Results}, nil
}

// killer returns why a process was killed, in parentheses, if more is known than the
// signal. It follows Porch's own words.
func (r *Runner) killer(out fnproc.Outcome) string {
	if out.Signal != syscall.SIGKILL {
		return ""
	}
	if out.OutOfMemory {
		return " (" + r.Memory.Text() + ")"
	}
	if said := r.Memory.Explain(); said != "" {
		return " (" + said + ")"
	}
	return ""
}

// platformFailure classifies an error of running the process at all.
func (r *Runner) platformFailure(failure Failure, err error) error {
	if _, ok := errors.AsType[*fnproc.LimitError](err); ok {
		return r.fail(failure, OutputTooLarge, err)
	}
	if _, ok := errors.AsType[*fnproc.LaunchError](err); ok { // no failure of the function, which has not begun
		return fmt.Errorf("unable to start the sandbox for %s: %w", failure.Image, err)
	}
	return r.fail(failure, NotStarted, err)
}
