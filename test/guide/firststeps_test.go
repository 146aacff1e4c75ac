// SPDX-License-Identifier: Apache-2.0

//go:build firststeps

package guide_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
)

// pages are documents whose commands need neither a cluster nor root, unless their blocks say so. The first one
// clones the repository, and the others go on there.
var pages = []string{
	"docs/first-steps/README.md", "docs/first-steps/on-call.md", "docs/first-steps/contributor.md",
	"docs/first-steps/porch-operator.md", "README.md",
}

// between separates the outputs of blocks.
const between = "\n== next block ==\n"

// TestFirstSteps runs the commands of a new user in their order, in a clone with all files as they are now.
//
//   - "sh" runs, and a block of "text" or "diff" behind it is in its output;
//   - "sh terminal" goes on running in a terminal of its own, until its page ends;
//   - "sh cluster" needs a cluster, "sh release" the files of a release, and "sh long" repeats much of `make test`:
//     these do not run.
func TestFirstSteps(t *testing.T) {
	home := t.TempDir()
	env, ports := newUser(t)
	dir := home
	for _, page := range pages {
		ran := t.Run(page, func(t *testing.T) { follow(t, dir, env, ports, blocks(t, page)) })
		if page == pages[0] {
			if !ran {
				t.FailNow() // the others go on from there
			}
			dir = filepath.Join(home, "function-runner")
			env = append(env, "PATH="+filepath.Join(dir, ".build", "bin")+":"+os.Getenv("PATH"))
		}
	}
}

// follow runs the blocks of a page in one shell.
func follow(t *testing.T, dir string, env []string, ports *strings.Replacer, all []block) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", script(t, ports, all))
	cmd.Dir = dir
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outputs := strings.Split(string(out), between)
	last := ""
	for _, b := range all {
		switch b.language {
		case "sh":
			last, outputs = outputs[1], outputs[1:]
		case "text", "diff":
			if want := strings.TrimSuffix(ports.Replace(b.text), "\n"); !strings.Contains(last, want) {
				t.Errorf("the page shows\n%s\nof\n%s", want, last)
			}
		}
	}
}

// script returns the commands of a page as one script.
func script(t *testing.T, ports *strings.Replacer, all []block) string {
	t.Helper()
	const serve = `server=
stop() {
  [ -n "$server" ] || return 0
  kill -- "-$server"
  while kill -0 -- "-$server" 2>/dev/null; do sleep 0.1; done
}
trap stop EXIT
serve() {
  setsid bash -c "$1" >"$OUTPUT" 2>&1 & server=$!
  until grep -q '^Stop with Ctrl-C' "$OUTPUT"; do
    kill -0 "$server" || { cat "$OUTPUT"; server=; exit 1; }
    sleep 0.2
  done
}
`
	var text strings.Builder
	fmt.Fprintf(&text, "OUTPUT=%s\n%s", filepath.Join(t.TempDir(), "terminal"), serve)
	for _, b := range all {
		switch commands := ports.Replace(b.text); b.language {
		case "sh":
			fmt.Fprintf(&text, "printf '%%s' '%s'\n%s", between, commands)
		case "sh terminal":
			fmt.Fprintf(&text, "serve '%s'\n", commands)
		case "sh cluster", "sh release", "sh long", "", "text", "diff":
		default:
			t.Errorf("a block of %q, of which this test does not know whether to run it", b.language)
		}
	}
	return text.String()
}

// newUser returns the environment of a user on this machine, whose clones are of the files as they are now, and what
// replaces the documented ports by free ones.
func newUser(t *testing.T) ([]string, *strings.Replacer) {
	t.Helper()
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "FNR_") || strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || name == "BUILD"
	})
	var free, pairs []string
	for _, documented := range []string{"localhost:9445", "localhost:9447", "localhost:9464"} {
		address := "localhost:" + freeport.Choose(t)
		free, pairs = append(free, address), append(pairs, documented, address)
	}
	return append(env,
		"PORT="+strings.TrimPrefix(free[0], "localhost:"), "FNCTL_ADDRESS="+free[0], "FNR_STATUS_ADDRESS="+free[1],
		"GOWORK=off", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_VALUE_0=https://github.com/krm-function-runner/",
		"GIT_CONFIG_KEY_0=url."+files(t)+"/.insteadOf"), strings.NewReplacer(pairs...)
}

// files returns a directory with a repository that has all files of this one as they are now, changed ones too.
func files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const copied = `mkdir "$0/function-runner"
git -C ` + root + ` ls-files -z --cached --others --exclude-standard | (cd ` + root + ` &&
  while IFS= read -r -d "" file; do ! [ -e "$file" ] || printf "%s\0" "$file"; done | tar --null -T - -cf -) |
  tar -xf - -C "$0/function-runner"
cd "$0/function-runner"
git init -q -b main
git add -A
git -c user.name=test -c user.email=test@example.com commit -q -m "all files"`
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", copied, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copy the files: %v\n%s", err, out)
	}
	return dir
}
