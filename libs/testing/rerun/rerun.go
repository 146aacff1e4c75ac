// SPDX-License-Identifier: Apache-2.0

// Package rerun runs a test again in a separate process. Use it for tests of settings that a process reads from its
// environment only once, such as proxies and certificate authorities.
package rerun

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"testing"
)

var (
	inside = flag.Bool("rerun.inside", false, "for package rerun: this is the process of its own")
	passed = flag.String("rerun.value", "", "for package rerun: what the test passes on")
)

// Test runs the calling test again in a new process, with the additional environment variables env. In the new process,
// Test returns the argument value and true. In the first process, Test waits for the new process. It then returns
// false, and the caller must return. If the test fails in the new process, it also fails in the first process.
func Test(t *testing.T, value string, env ...string) (given string, there bool) {
	t.Helper()
	if *inside {
		return *passed, true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "-rerun.inside",
		"-rerun.value="+value)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Errorf("in the separate process: %v\n%s", err, out)
	}
	return "", false
}
