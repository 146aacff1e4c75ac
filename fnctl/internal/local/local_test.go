// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// evaluator runs programs whose output is bounded.
var evaluator = local.Evaluator{Environment: []string{"PATH=/usr/bin:/bin"}, MaxOutputBytes: 1000}

// TestOutputOfChildrenIsWaitedFor runs a program that ends while one that it has started still writes.
func TestOutputOfChildrenIsWaitedFor(t *testing.T) {
	got, err := evaluator.Evaluate(t.Context(), pipeline.Request{
		Exec: `sh -c "echo first; (sleep 2; echo second; echo log >&2) &"`,
	})
	if err != nil || string(got.ResourceList) != "first\nsecond\n" || string(got.Log) != "log\n" {
		t.Errorf("got %q and log %q, %v, want both lines", got.ResourceList, got.Log, err)
	}
}

// TestCutOutputIsNoSuccess runs a program whose child holds the output until the deadline.
func TestCutOutputIsNoSuccess(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := evaluator.Evaluate(ctx, pipeline.Request{Exec: `sh -c "echo first; sleep 5 &"`})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want an error of the deadline", err)
	}
}

func TestFailures(t *testing.T) {
	for command, want := range map[string]string{
		"yes":            "wrote more than 1000 bytes (--max-message-size)",
		"/nonexistent":   "no such file or directory",
		"'":              "is not a command",
		"sh -c 'exit 3'": "exit status 3",
	} {
		_, err := evaluator.Evaluate(t.Context(), pipeline.Request{Exec: command})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}

func TestKilledProgramHasNoExitCode(t *testing.T) {
	_, err := evaluator.Evaluate(t.Context(), pipeline.Request{Exec: "sh -c 'kill -9 $$'"})
	failed, ok := errors.AsType[*pipeline.FunctionError](err)
	if !ok || failed.Failure.GetReason() != functionrunnerv1.FunctionFailure_REASON_SIGNALED ||
		failed.Failure.GetSignal() != "killed" {
		t.Errorf("got %v, want the signal", err)
	}
}

// TestChildrenAreStoppedToo stops a program whose child keeps a pipe open.
func TestChildrenAreStoppedToo(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error, 1)
	go func() {
		_, err := evaluator.Evaluate(ctx, pipeline.Request{Exec: `sh -c "(sleep 60; echo survived) >` + pipe + ` & wait"`})
		stopped <- err
	}()
	child, err := os.Open(pipe) // waits for the child
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	stop()
	if got, err := io.ReadAll(child); err != nil || len(got) > 0 {
		t.Errorf("the child wrote %q, %v", got, err)
	}
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error of the context", err)
	}
}
