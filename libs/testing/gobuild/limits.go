// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Without checks that the program in the test's directory links none of the banned packages, and no packages below
// them. Banned maps the path of a package to the reason.
func Without(t *testing.T, banned map[string]string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		for pkg, reason := range banned {
			if dep == pkg || strings.HasPrefix(dep, pkg+"/") {
				t.Errorf("%s is linked in: %s", dep, reason)
			}
		}
	}
}

// AtMost checks that the stripped program in the test's directory has at most maxBytes bytes.
func AtMost(t *testing.T, maxBytes int64) {
	t.Helper()
	info, err := os.Stat(Program(t, ".", "."))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBytes {
		t.Errorf("the binary has %d bytes, more than %d", info.Size(), maxBytes)
	}
}
