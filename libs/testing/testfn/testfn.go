// SPDX-License-Identifier: Apache-2.0

// Package testfn gives tests real functions to run: a program with behaviours selected by name (its
// command lists them), and functions that find its processes.
package testfn

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// program is the import path of the test function.
const program = "github.com/krm-function-runner/function-runner/libs/testing/testfn/cmd/testfn"

// Install puts the test function into dir, which must exist and belong to the test, under each of names. A name is a
// behaviour, such as "echo" or "sleep=50ms", or any other name if the behaviour is given as an argument. The test fails
// if a process from dir still runs after it.
func Install(t testing.TB, dir string, names ...string) {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := writeProgram(filepath.Join(dir, name), binary); err != nil {
			t.Fatalf("install test function: %v", err)
		}
	}
	t.Cleanup(func() { AssertNoneLeft(t, dir) })
}

// Built is the environment variable with the path of the program, for tests that run as a user who cannot build it.
const Built = "TESTFN_BUILT"

// build builds the program, statically and once per test process, and returns it. Its bytes are
// kept rather than a file, which nothing would remove.
var build = sync.OnceValues(func() ([]byte, error) {
	if path := os.Getenv(Built); path != "" {
		return os.ReadFile(path)
	}
	dir, err := os.MkdirTemp("", "testfn")
	if err != nil {
		return nil, fmt.Errorf("build test function: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "testfn")
	if err := gobuild.To(path, "", program); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// writeProgram writes an executable file. No process may be forked at the same time: it would hold
// the file open for writing for a moment, and the kernel does not execute such a file ("text file
// busy").
func writeProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
