// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc_test

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// TestFunctionsAreUnhurried checks the slack that a function's child sees, which
// is what the function has, and at ours, which must stay as it was.
func TestFunctionsAreUnhurried(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := fnproc.Command{
		Path:      "/bin/sh",
		Args:      []string{"-c", "cat /proc/self/timerslack_ns; exit 0"},
		Env:       []string{"PATH=/bin:/usr/bin"},
		MaxOutput: maxOutput,
		MaxLog:    maxLog,
	}
	got, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
	if err != nil || strings.TrimSpace(string(got.Output)) != "1000000" {
		t.Errorf("a function's slack is %q ns (%v, %s), want a millisecond", got.Output, err, got.Log)
	}
	if after, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || after != before {
		t.Errorf("our slack is %d ns (%v), was %d", after, err, before)
	}
}
