// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/status"

	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// TestFailuresNameTheResolvedImage calls a function that fails by its short name:
// users read the name that they gave, programs the canonical one.
func TestFailuresNameTheResolvedImage(t *testing.T) {
	for evaluator, start := range map[string]func(t *testing.T) string{
		"exec": func(t *testing.T) string {
			address, _ := start(t, "exit1")
			return address
		},
		"pod": func(t *testing.T) string {
			pod := testpod.ServeFunctions(t, t.TempDir(), map[string]string{"exit1:v1": "exit1"})
			return startPods(t, leasetest.NewManager(func(
				context.Context, *lease.Open, func(*lease.Waiting),
			) (*lease.Granted, error) {
				return &lease.Granted{Address: pod, Pod: "pod"}, nil
			}))
		},
	} {
		t.Run(evaluator, func(t *testing.T) {
			st := status.Convert(newCaller(t, start(t)).evaluate(t, "exit1:v1", ""))
			if !strings.Contains(st.Message(), `function "exit1:v1"`) {
				t.Errorf("message %q, want the name that was given", st.Message())
			}
			found := false
			for _, d := range st.Details() {
				if failure, ok := d.(*functionrunnerv1.FunctionFailure); ok {
					found = failure.GetImage() == image("exit1")
				}
			}
			if !found {
				t.Errorf("details %v, want the name as it was resolved", st.Details())
			}
		})
	}
}
