// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// Install installs the function with the given behaviour in dir and returns the path of the function's binary. For
// the behaviour Missing, it installs nothing.
func Install(t *testing.T, dir, behaviour string) string {
	t.Helper()
	path := filepath.Join(dir, behaviour)
	switch behaviour {
	case Missing:
	case NotExecutable:
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatalf("install %s: %v", behaviour, err)
		}
	default:
		testfn.Install(t, dir, behaviour)
	}
	return path
}

// longLog is the behaviour of a function that logs twice the maximum size of a log, [function.MaxLogBytes], and
// returns its input.
const longLog = "greet=2097152"

// Behaviours returns all behaviours that the tests use, so that a target can prepare all functions in advance.
func Behaviours() []string {
	return []string{
		"echo", "warn", "ignore-stdin", "exit1", "exit1-garbage", "garbage", "empty", "signal", "bad-utf8",
		Missing, NotExecutable, "flood-stdout", longLog, "flood-both", "hang", "hang-with-child",
		"ignore-sigterm", "orphan", "daemon", "sleep=20ms",
	}
}

// Repository returns the image repository, without registry, for the function with the given behaviour.
func Repository(behaviour string) string {
	return "conformance/" + strings.ReplaceAll(behaviour, "=", "-")
}
