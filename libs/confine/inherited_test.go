// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// TestFunctionsInheritNoDescriptors has descriptors open that the programs inherit which this one starts, as it could
// have inherited them itself.
func TestFunctionsInheritNoDescriptors(t *testing.T) {
	for range 10 {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
	}
	runner, stop := start(t, config(t))
	defer stop()
	for name, runner := range map[string]*fnproc.Runner{
		"confined": runner, "not confined": fnproc.NewRunner(fnproc.Config{}),
	} {
		if got := attempt(t, runner, command(t, "try=descriptors")); got != "done" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestStandardStreamsCanBeOpenedAgain has a confined function open what it reads and writes by path, as many do.
func TestStandardStreamsCanBeOpenedAgain(t *testing.T) {
	runner, stop := start(t, config(t))
	defer stop()
	for _, path := range []string{"/dev/stdin", "/proc/self/fd/0", "/dev/stdout", "/dev/stderr"} {
		if got := attempt(t, runner, command(t, "try=reopen:"+path)); got != "done" {
			t.Errorf("%s: %s", path, got)
		}
	}
}
