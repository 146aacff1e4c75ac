// Package rerun runs a test again in a process of its own, for what a process reads
// from its environment only once, such as proxies and authorities.
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

// Test runs the test that calls it again, with more variables in the environment. There,
// it returns the value, and true. Here it returns false when that has ended, and the test
// has failed if that one has.
func Test(t *testing.T, value string, env ...string) (given string, there bool) {
	t.Helper()
	if *inside {
		return *passed, true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "-rerun.inside", "-rerun.value="+value)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	return "", false
}
