// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package gateway_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// killed has TestSandboxesEndWithTheProgram be the program, with that launcher.
var killed = flag.String("killed", "", "the launcher of a program that is killed")

// TestSandboxesEndWithTheProgram kills a program while a function runs that never ends.
func TestSandboxesEndWithTheProgram(t *testing.T) {
	if *killed != "" {
		run, _, _ := startHostile(t, *killed, func(*gateway.Config) {})
		t.Fatalf("it is killed before the function returns %s", run("hang"))
	}
	eachLauncher(t, func(t *testing.T, launcher string) {
		if launcher == "direct" {
			return // its functions end with their input and output: see docs/security.md
		}
		all := newImages(t) // of the program, whose directory it is; at the end, it checks that no sandbox is left
		tests, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		testfn.Install(t, all.dir, "testfn")
		cmd := exec.CommandContext(t.Context(), tests, "-test.run=^TestSandboxesEndWithTheProgram$", "-killed="+launcher)
		cmd.Env = append(cmd.Environ(), "TMPDIR="+all.dir, testfn.Built+"="+filepath.Join(all.dir, "testfn"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitFunction(t, filepath.Base(all.dir)+"/")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
