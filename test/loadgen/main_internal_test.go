// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// echo returns its input.
type echo struct {
	evaluator.UnimplementedFunctionEvaluatorServer
}

func (echo) EvaluateFunction(_ context.Context, req *evaluator.EvaluateFunctionRequest) (
	*evaluator.EvaluateFunctionResponse, error,
) {
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

// TestTargetsOfEachKind measures a gateway, a program and a shell that return the same.
func TestTargetsOfEachKind(t *testing.T) {
	listener := servetest.Listen(t)
	server := grpc.NewServer()
	evaluator.RegisterFunctionEvaluatorServer(server, echo{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	plan := Plan{Duration: 60 * time.Millisecond, Turn: 10 * time.Millisecond, Loads: []Load{{Callers: 2}}}
	var err error
	if plan.Inputs, err = makeInputs("1,3"); err != nil {
		t.Fatal(err)
	}
	for _, description := range []string{"bare=exec:cat", "shells=shell:cat", "gateway=" + listener.Addr().String()} {
		target, err := newTarget(description, "example.com/fn:v1")
		if err != nil {
			t.Fatal(err)
		}
		plan.Targets = append(plan.Targets, target)
	}
	levels, err := Run(t.Context(), plan)
	if err != nil || len(levels) != 2 {
		t.Fatal(levels, err)
	}
	for _, level := range levels {
		if len(level.Different) > 0 {
			t.Errorf("%s: targets %v return something else", level.Input, level.Different)
		}
		for _, result := range level.Results {
			if result.Evaluations == 0 || result.Failed > 0 {
				t.Errorf("%s: %+v", level.Input, result)
			}
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-items x":           `"x" is not a number`,
		"-callers 0":         `"0" is not a number of one or more`,
		"-target nameless":   "has no name",
		"-target a=exec:/no": "no such file",
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: %v, want %q", args, err, want)
		}
	}
}
