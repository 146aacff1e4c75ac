// SPDX-License-Identifier: Apache-2.0

//go:build newuser

// Package newuser has the tests of a user account without rights, on machines that have one launcher of sandboxes.
package newuser

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

// clone has the user clone the repository and build all, which downloads all modules.
var clone = flag.Bool("newuser.clone", false, "begin with a clone of the repository and make run")

// launchers are programs of which a machine has one, and what the log names it.
var launchers = map[string]string{"bwrap": "bubblewrap", "runc": "runc", "crun": "crun"}

// become runs a command, as a user that is known nowhere else, where the programs in HIDDEN are no programs.
const become = `
for program in $HIDDEN; do mount --bind /dev/null "$program"; done
exec setpriv --reuid=64321 --regid=64321 --clear-groups --bounding-set=-all --inh-caps=-all -- \
  env -i HOME="$HOME" PATH="$PATH" "$@"
`

// user is a new user's account.
type user struct{ home, hidden string }

// newUser returns a user of a machine with one launcher, or with none if that is empty.
func newUser(t *testing.T, launcher string) user {
	t.Helper()
	if _, err := exec.LookPath(launcher); err != nil && launcher != "" {
		t.Fatalf("install the package %s: %v", launchers[launcher], err)
	}
	u := user{home: localrunnertest.SharedDir(t)}
	for other := range launchers {
		path, err := exec.LookPath(other)
		if other != launcher && err == nil {
			u.hidden += path + " "
		}
	}
	return u
}

// run runs a command in the user's home, and returns what it writes.
func (u user) run(t *testing.T, command ...string) string {
	t.Helper()
	args := append([]string{"--mount", "--", "bash", "-euc", become, "bash"}, command...)
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Dir = u.home
	cmd.Env = []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "HIDDEN=" + u.hidden}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// give runs a command in the repository, with the user's home as its last argument, and gives all that is there to
// the user.
func (u user) give(t *testing.T, command ...string) {
	t.Helper()
	args := append([]string{"-euc", `"$@" && chown -R 64321:64321 "${@: -1}"`, "bash"}, command...)
	cmd := exec.CommandContext(t.Context(), "bash", append(args, u.home)...)
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// TestExamples has new users render all examples, with each launcher.
func TestExamples(t *testing.T) {
	for launcher := range launchers {
		t.Run(launcher, func(t *testing.T) {
			u := newUser(t, launcher)
			var out string
			if *clone {
				u.give(t, "git", "clone", "-q", ".")
				out = u.run(t, "env", "LOG_LEVEL=2", "make", "demo")
			} else {
				u.give(t, "cp", "-R", "--parents", "examples", ".build/bin", ".build/functions", ".build/examples")
				out = u.run(t, "env", "LOG_LEVEL=2", "examples/run.sh")
			}
			for _, want := range []string{"All examples are as expected.", "bin/" + launcher} {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestExamplesWithoutALauncher has a new user render the examples where nothing starts sandboxes: the demo names the
// package to install, and renders the rest.
func TestExamplesWithoutALauncher(t *testing.T) {
	u := newUser(t, "")
	u.give(t, "cp", "-R", "--parents", "examples", ".build/bin", ".build/functions", ".build/examples")
	out := u.run(t, "env", "LOG_LEVEL=2", "examples/run.sh")
	for _, want := range []string{
		"no sandbox on this machine", "skipped: its functions run in sandboxes", "install the package bubblewrap",
		"All examples are as expected, but for any-image, which was skipped.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

const kptfile = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: package
pipeline:
  mutators:
    - image: %s/fn/echo:v1.0.0
`

// TestPrivateImages has new users render and check a package whose image is in a private registry with an authority of
// its own, and run the image in docker's place.
func TestPrivateImages(t *testing.T) {
	private := localrunnertest.Private(t)
	private.Push(t, "fn/echo:v1.0.0", "echo")
	login := base64.StdEncoding.EncodeToString([]byte(localrunnertest.User + ":" + localrunnertest.Password))
	for launcher := range launchers {
		t.Run(launcher, func(t *testing.T) {
			u := newUser(t, launcher)
			if err := os.Mkdir(filepath.Join(u.home, "package"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string]string{
				"ca.crt":          string(private.Authority()),
				"config.json":     fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, private.Host, login),
				"package/Kptfile": fmt.Sprintf(kptfile, private.Host),
			} {
				if err := os.WriteFile(filepath.Join(u.home, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			u.give(t, "cp", ".build/bin/fnctl")
			out := u.run(t, "env", "DOCKER_CONFIG=.", "FNR_REGISTRY_TLS_PATHS="+private.Host+"="+u.home, "bash", "-euc", `
				./fnctl render --local package
				./fnctl render --local --check package
				eval "$(./fnctl docker install bin)"
				./fnctl source package | docker run -i --rm "$0"
			`, private.Host+"/fn/echo:v1.0.0")
			for _, want := range []string{"Ran 1 function in 1 package", "kind: ResourceList"} {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		})
	}
}
