// SPDX-License-Identifier: Apache-2.0

// Package testfn installs real functions for tests: a program whose name selects its behaviour (see its command for a
// list). It also finds the processes of this program.
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

// Install installs the test function in dir under each of the names. The directory must exist and belong to the test.
// A name is a behaviour, such as "echo" or "sleep=50ms", or any other name if the behaviour is given as an argument.
// The test fails if a process of a program in dir is left at its end.
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

// Built is the name of an environment variable with the path of the built program. It is for tests that run as a user
// who cannot build the program.
const Built = "TESTFN_BUILT"

// build builds the program statically, once per test process, and returns its bytes. We store the bytes instead of a
// file, because no test would remove the file.
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

// writeProgram writes an executable file. It prevents forks meanwhile, because a forked process would inherit the
// file open for writing for a moment, and the kernel does not execute such a file ("text file busy").
func writeProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
