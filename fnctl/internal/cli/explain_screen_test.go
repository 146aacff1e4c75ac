// SPDX-License-Identifier: Apache-2.0

//go:build tmux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestScreensOfChecks runs --check, --explain and tests on a terminal: titles are bold, diffs and outcomes in colour,
// and packages that are rendered concurrently are shown in order.
func TestScreensOfChecks(t *testing.T) {
	const packages = `
-- web/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: web}
-- web/a/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: a}
pipeline: {mutators: [{image: "label:v1", configMap: {value: x}}]}
-- web/b/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: b}
pipeline: {mutators: [{image: "noop:v1"}]}
-- tests/one/.expected/config.yaml --
image: label:v1
-- tests/one/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- tests/two/.expected/config.yaml --
image: noop:v1
-- tests/two/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(packages)), dir); err != nil {
		t.Fatal(err)
	}
	//nolint:forbidigo // where this test's fnctl is
	env := []string{"FNCTL_ADDRESS=" + functions.Serve(t), "PATH=" + os.Getenv("PATH")}
	for command, want := range map[string][]string{
		"fnctl render web --check": {
			"\x1b[1ma in ./a", "label:v1", "\x1b[1mb in ./b", "noop:v1", "Ran 2 functions in 3 packages",
			"changed web/a/Kptfile", "1 file would change", "status 3",
		},
		"fnctl render web --dry-run --explain": {
			"Step 1 of 2: label:v1 in ./a", "\x1b[32m+metadata: {name: a, labels: {seen", "\x1b[1mStep 2 of 2: noop:v1 in ./b",
			"no file changed", "status 0",
		},
		"fnctl test tests": {"\x1b[31mFAIL", "tests/one", "\x1b[32m+metadata: {name: a, labels", "tests/two", "status 1"},
	} {
		screen := open(t, dir, 100, 40, env, command).await(want[len(want)-1])
		for _, text := range want {
			at := strings.Index(screen, text)
			if at < 0 {
				t.Fatalf("%s: the rest of the screen lacks %q:\n%s", command, text, screen)
			}
			screen = screen[at:]
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tests", "one", ".expected", "diff.patch")); err == nil {
		t.Error("a test without --update wrote its expectation")
	}
}
