// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
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
	failed, ok := errors.AsType[*client.FunctionError](err)
	if !ok || failed.Failure.GetReason() != functionrunnerv1.FunctionFailure_REASON_SIGNALED ||
		failed.Failure.GetSignal() != "killed" {
		t.Errorf("got %v, want the signal", err)
	}
}
