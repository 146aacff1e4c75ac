// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Without fails the test if the program in the current directory links a banned package or a package below it. The
// keys of banned are package paths, and the values are the reasons for the error message.
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

// AtMost fails the test if the stripped binary of the program in the current directory is larger than maxBytes.
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
