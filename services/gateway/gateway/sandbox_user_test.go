// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package gateway_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// ordinaryUsers are users that are known nowhere else, and their groups. Each launcher has its own: the kernel bounds
// the processes of a user, and one of the tests takes them all.
var ordinaryUsers = map[string]uint32{
	"bubblewrap": 64331, "crun": 64332, "runc": 64333, "runsc": 64334, "direct": 64335,
}

// ofSandboxes are the tests that an ordinary user runs too.
const ofSandboxes = "Sandbox|HostileFunctions|ForkBomb|FunctionThatIsKilled"

// TestAsAnOrdinaryUser runs the tests of sandboxes as users without rights, with all launchers at the same time.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the user who runs the tests is one")
	}
	t.Run("each", func(t *testing.T) {
		eachLauncher(t, func(t *testing.T, launcher string) {
			t.Parallel()
			user, ok := ordinaryUsers[launcher]
			if !ok {
				t.Fatalf("%s has no ordinary user", launcher)
			}
			home := newHome(t, user)
			cmd := exec.CommandContext(t.Context(), filepath.Join(home, "tests"),
				"-test.v", "-test.timeout=10m", "-test.run=^Test.*("+ofSandboxes+")/^"+launcher+"$")
			cmd.Dir = home
			cmd.Env = append(cmd.Environ(), "HOME="+home, "TMPDIR="+home, testfn.Built+"="+filepath.Join(home, "testfn"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestSandboxConformance/"+launcher) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	})
}

// newHome returns a directory of a user, with these tests and the program of the functions.
func newHome(t *testing.T, user uint32) string {
	t.Helper()
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	testfn.Install(t, home, "testfn")
	share(t, filepath.Join(home, "testfn"))
	tests, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "cp", tests, filepath.Join(home, "tests")).CombinedOutput()
	if err != nil {
		t.Fatalf("copy the tests: %v: %s", err, out)
	}
	if err := os.Chown(home, int(user), int(user)); err != nil {
		t.Fatal(err)
	}
	return home
}
