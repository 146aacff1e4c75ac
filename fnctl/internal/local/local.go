// SPDX-License-Identifier: Apache-2.0

// Package local runs functions on this machine without a function runner, as programs or in containers.
package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/google/shlex"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// waitForInput is the maximum wait after a program's exit while child processes keep its standard input open.
const waitForInput = time.Second

// Evaluator runs functions that are programs of this machine. It passes functions that are images to Images.
type Evaluator struct {
	// Images evaluates functions that are images. It may be nil if no function is an image.
	Images pipeline.Evaluator
	// ImageProgram is a program of this machine that runs instead of every image. If it is empty, the images run.
	ImageProgram string
	// Environment is the environment of the programs, as KEY=VALUE.
	Environment []string
	// MaxOutputBytes is the maximum size of a program's standard output and of its standard error. It is required.
	MaxOutputBytes int
}

// Evaluate implements [pipeline.Evaluator]. A nonzero exit code of a program is a [pipeline.FunctionError].
func (e *Evaluator) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	if req.Exec = cmp.Or(req.Exec, e.ImageProgram); req.Exec == "" {
		return e.Images.Evaluate(ctx, req)
	}
	command, err := shlex.Split(req.Exec)
	if err != nil || len(command) == 0 {
		return pipeline.Response{}, fmt.Errorf("%q is not a command: %w", req.Exec, errors.Join(err))
	}
	return e.execute(ctx, req.Exec, command, req.ResourceList)
}

// execute runs a program as a function, with a ResourceList as standard input. The argument name is used in errors.
func (e *Evaluator) execute(
	ctx context.Context, name string, command []string, list []byte,
) (pipeline.Response, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, log := &limitedBuffer{limit: e.MaxOutputBytes, full: stop}, &limitedBuffer{limit: e.MaxOutputBytes, full: stop}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = e.Environment
	cmd.Stdin = bytes.NewReader(list)
	killWithChildren(cmd)
	err := runProgram(ctx, cmd, out, log)
	resp := pipeline.Response{ResourceList: out.buf.Bytes(), Log: log.buf.Bytes()}
	switch exited, ok := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return resp, fmt.Errorf("program %q was stopped: %w", name, context.Cause(ctx))
	case !ok:
		return resp, fmt.Errorf("run program %q: %w", name, err)
	default:
		return resp, programFailure(name, exited, resp)
	}
}

// runProgram runs a program and reads its output. It reads until the program and all of its child processes have closed
// the output, because truncated output must never count as complete. It stops the program when ctx expires.
func runProgram(ctx context.Context, cmd *exec.Cmd, out, log io.Writer) error {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	cmd.WaitDelay = waitForInput
	if err := cmd.Start(); err != nil {
		return err
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(out, stdout) }) // a full buffer cancels ctx
	copying.Go(func() { _, _ = io.Copy(log, stderr) })
	copied := make(chan struct{})
	go func() { copying.Wait(); close(copied) }()
	select {
	case <-copied:
	case <-ctx.Done():
	}
	err = cmd.Wait() // closes the pipes, which child processes may still hold
	<-copied
	return cmp.Or(err, ctx.Err())
}

// programFailure returns a failed program's error in the form of a gateway's error, so that fnctl shows both alike.
func programFailure(name string, exited *exec.ExitError, resp pipeline.Response) error {
	details := &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_EXITED, ExitCode: int32(exited.ExitCode()), //nolint:gosec // small
		Stderr: string(resp.Log),
	}
	if signal, killed := strings.CutPrefix(exited.String(), "signal: "); killed {
		details.Reason = functionrunnerv1.FunctionFailure_REASON_SIGNALED
		details.Signal = signal
	}
	failed := &pipeline.FunctionError{Image: name, Message: exited.Error(), Failure: details}
	if list, err := yaml.Parse(string(resp.ResourceList)); err == nil {
		if field := list.Field("results"); field != nil {
			failed.Results, _ = result.FromYAML(field.Value)
		}
	}
	return failed
}

// limitedBuffer stores a program's output. If the output exceeds limit, it calls full, which stops the program.
type limitedBuffer struct {
	buf   bytes.Buffer
	limit int
	full  context.CancelCauseFunc
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.limit {
		err := fmt.Errorf("it wrote more than %d bytes (--max-message-size)", b.limit)
		b.full(err)
		return 0, err
	}
	return b.buf.Write(p)
}
