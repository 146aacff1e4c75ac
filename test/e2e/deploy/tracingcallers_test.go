// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// traceShown is how fnctl shows the trace of an evaluation.
var traceShown = regexp.MustCompile(`Trace ([0-9a-f]{32})`)

// address returns the address of the system's gateway.
func (p place) address(t *testing.T) string {
	t.Helper()
	return s.ServiceAddress(suite.Context(t), t, p.system, "function-runner", "9445")
}

// render has fnctl render a package of one function, and returns a channel that gets the trace of its evaluation.
func (p place) render(ctx context.Context, t *testing.T, fnctl, image string) <-chan string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: traced\npipeline:\n  mutators:\n    - image: " +
			image + "\n      configMap:\n        namespace: shop\n",
		"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rendered := make(chan string, 1)
	go func() {
		out, err := exec.CommandContext(ctx, fnctl, "render", dir, "--trace", "--address="+p.address(t)).CombinedOutput()
		id := traceShown.FindStringSubmatch(string(out))
		if err != nil || id == nil {
			t.Errorf("fnctl render: %v, with no trace or\n%s", err, out)
			id = []string{"", ""}
		}
		rendered <- id[1]
	}()
	return rendered
}

// waiting returns when the gateway shows that so many evaluations are in a phase.
func (p place) waiting(ctx context.Context, t *testing.T, fnctl, phase string, count int) {
	t.Helper()
	suite.Until(ctx, t, fmt.Sprintf("%d evaluations are in the phase %s", count, phase), func() (bool, string) {
		out, err := exec.CommandContext(ctx, fnctl, "top", "--once", "-o", "json", "--address="+p.address(t)).Output()
		var shown struct {
			Status struct{ Active map[string]int }
		}
		if err == nil {
			err = json.Unmarshal(out, &shown)
		}
		return err == nil && shown.Status.Active[phase] == count, fmt.Sprintf("%v, %s", err, out)
	})
}
