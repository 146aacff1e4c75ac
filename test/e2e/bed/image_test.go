// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package bed_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestNodeFunctionRuns runs a function with an empty input, which it returns.
func TestNodeFunctionRuns(t *testing.T) {
	t.Parallel()
	image := s.Registry(t, "open").Host + "/test/nodejs:v1"
	if output := s.Output(suite.Context(t), t, s.Namespace(t), suite.Pod("nodejs", image)); output != "" {
		t.Errorf("the function wrote %q, want nothing", output)
	}
}

func TestProgramIsFoundByItsLink(t *testing.T) {
	t.Parallel()
	pod := suite.Pod("program", s.Registry(t, "open").Host+"/programs/toolbox:latest", "list", "/ko-app")
	pod.Spec.Containers[0].Command = []string{"/bin/toolbox"}
	if output := s.Output(suite.Context(t), t, s.Namespace(t), pod); !strings.Contains(output, "toolbox") {
		t.Errorf("the program sees %q, want itself", output)
	}
}
