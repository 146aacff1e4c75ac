// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// programFlags are the tables of flags that are written by hand; make generate writes fnctl's.
var programFlags = []struct{ dir, title string }{
	{"services/function-runner", "flag"},
	{"wrapper-server", "wrapper-server"},
}

// TestDocumentHasEveryFlag compares the tables with the programs' help.
func TestDocumentHasEveryFlag(t *testing.T) {
	for _, tc := range programFlags {
		t.Run(tc.dir, func(t *testing.T) {
			documented := map[string]string{}
			for _, r := range table(t, configurationDoc, tc.title) {
				for _, name := range slices.Concat(quoted(r[tc.title]), quoted(r["flag"])) {
					if flag, ok := strings.CutPrefix(name, "--"); ok {
						documented[flag] = plainDefault(strings.Join(quoted(r["default"]), ""))
					}
				}
			}
			program := gobuild.Program(t, filepath.Join(root, tc.dir), ".")
			if diff := cmp.Diff(flagsOf(t, program), documented); diff != "" {
				t.Errorf("flags and defaults (-program +document):\n%s", diff)
			}
		})
	}
}

// flagHelp matches flags in the output of -h, in the forms of Go and of pflag.
var flagHelp = regexp.MustCompile(`(?m)^ +(?:-\w, )?--?([a-z-]+)(?: .*)?(?:\n {4}\t.*)?$`)

// defaultHelp matches the default in the description of a flag.
var defaultHelp = regexp.MustCompile(`\(default "?([^"]*?)"?\)$`)

// flagsOf returns a program's flags and their defaults, from its help.
func flagsOf(t *testing.T, program string) map[string]string {
	t.Helper()
	help := exec.CommandContext(t.Context(), program, "-h")
	help.Env = []string{} // variables would change the defaults
	text, err := help.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", help, err, text)
	}
	flags := map[string]string{}
	for _, match := range flagHelp.FindAllStringSubmatch(string(text), -1) {
		if match[1] == "help" {
			continue
		}
		flags[match[1]] = ""
		if value := defaultHelp.FindStringSubmatch(match[0]); value != nil {
			flags[match[1]] = plainDefault(value[1])
		}
	}
	return flags
}

// plainDefault returns a default in the form of the document. Not all programs print it if it is
// false.
func plainDefault(value string) string {
	if value == "false" {
		return ""
	}
	return strings.Replace(value, "m0s", "m", 1)
}
