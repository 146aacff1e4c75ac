// SPDX-License-Identifier: Apache-2.0

// Package testfn installs the program testfn, a KRM function for tests whose file name selects its behaviour. The
// documentation of the command testfn lists the behaviours. The package also finds running processes of the
// program.
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

// program is the import path of the command testfn, the KRM function for tests.
const program = "github.com/krm-function-runner/function-runner/libs/testing/testfn/cmd/testfn"

// Install installs the program testfn in dir under each of the names. A name is a behaviour, such as "echo" or
// "sleep=50ms". It may be any other name if the behaviour is passed as an argument. The directory must exist, and
// only this test may use it. The test fails if a process of the installed programs still runs when the test ends.
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

// Built is an environment variable with the path of the compiled program testfn. It is for tests that run as a user
// who cannot compile the program.
const Built = "TESTFN_BUILT"

// build compiles the program testfn statically, once per test process, and returns the bytes of the binary. We keep
// the bytes instead of a file, because no test would delete the file.
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

// writeProgram writes an executable file. While it writes, it blocks the start of processes in this program. A new
// process would briefly inherit the file open for writing, and the kernel does not execute a file that is open for
// writing ("text file busy").
func writeProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
