// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"os/exec"
	"strings"
	"testing"
)

// Kubectl runs kubectl with the given standard input, and returns its standard output. The test fails if kubectl fails.
func Kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(Context(t), "kubectl", args...)
	cmd.Stdin = strings.NewReader(input)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, &errors)
	}
	return string(out)
}
