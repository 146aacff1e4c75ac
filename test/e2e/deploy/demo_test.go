// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestClusterDemo runs the commands of `make cluster-demo`, in separate namespaces. At the end all
// functions of the examples have pods.
func TestClusterDemo(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	at := aside("demo")
	at.clean(t)
	demo := exec.CommandContext(suite.Context(t), filepath.Join(root, "examples/cluster-demo.sh"))
	demo.Env = append(demo.Environ(), "SYSTEM="+at.system, "FUNCTIONS="+at.functions,
		"FNCTL="+gobuild.Program(t, filepath.Join(root, "fnctl"), "."))
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("the demo: %v\n%s", err, out)
	}
	_, pods, _ := strings.Cut(string(out), "=== fnctl pods\n")
	for _, function := range []string{"apply-replacements", "apply-setters", "set-namespace", "starlark"} {
		if !strings.Contains(pods, function) {
			t.Errorf("the demo shows no pod of %s:\n%s", function, out)
		}
	}
}
