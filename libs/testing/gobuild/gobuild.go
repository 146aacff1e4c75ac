// SPDX-License-Identifier: Apache-2.0

// Package gobuild builds programs for tests. It uses the Makefile's flags, so that Go's build cache is effective.
package gobuild

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program builds the main package pkg, like `go build` in the directory dir, and returns the path of the binary. The
// binary is removed after the test.
func Program(t testing.TB, dir, pkg string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(dir, pkg))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(abs))
	if err := To(path, dir, pkg); err != nil {
		t.Fatal(err)
	}
	return path
}

// To builds the main package pkg, like `go build` in the directory dir, and writes the binary to the absolute path.
func To(path, dir, pkg string) error {
	// `go build` links a program each time. `go run` caches linked programs, so it copies the program instead of running
	// it.
	cmd := exec.Command("go", "run", "-exec=cp", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false",
		"-ldflags=-s -w", pkg, path)
	cmd.Dir = dir
	// With the settings of the Makefile, the build is fast, because most packages are already in Go's build cache. The
	// test's own settings, such as a workspace, could also change the binary.
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", pkg, dir, err, out)
	}
	return nil
}

// Without fails the test if the program in the current directory links a banned package or one of its subpackages. The
// keys of the map banned are package paths, and its values are reasons for the error message.
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

// AtMost fails the test if the program in the current directory is larger than maxBytes after stripping.
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
