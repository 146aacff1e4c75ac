// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// steps are the commands of the document, by the number of their section.
type steps map[string][]string

// section is the title of a section with a number; block is a block of commands, or of other text.
var (
	section = regexp.MustCompile(`^## (\d+)\. `)
	values  = regexp.MustCompile(`(?m)^[A-Z]+=`)
)

// readSteps returns the commands of a document: its blocks of the language sh, each as a whole.
func readSteps(t *testing.T, path string) steps {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found, number, block := steps{}, "", ""
	inside, ours := false, false
	for line := range strings.Lines(string(content)) {
		switch {
		case strings.HasPrefix(line, "```") && inside:
			if ours {
				found[number] = append(found[number], block)
			}
			inside, ours, block = false, false, ""
		case strings.HasPrefix(line, "```"):
			inside, ours = true, strings.TrimSpace(line) == "```sh"
		case inside:
			block += line
		case section.MatchString(line):
			number = section.FindStringSubmatch(line)[1]
		}
	}
	for _, number := range []string{"1", "2", "3", "4"} {
		if len(found[number]) == 0 {
			t.Fatalf("section %s of %s has no commands", number, path)
		}
	}
	return found
}

// site is where the commands run, with the values that the document leaves to its reader.
type site struct {
	dir, version, registry, key string
}

// script returns a script of some blocks. The first block, with the reader's values, has those of the site.
func (s site) script(t *testing.T, blocks []string) string {
	t.Helper()
	own := map[string]string{"VERSION": s.version, "REGISTRY": s.registry, "KEY": s.key, "OVERLAY": overlay}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for name, value := range own {
		script.WriteString(name + "='" + value + "'\n")
	}
	for _, block := range blocks {
		if values.MatchString(block) && strings.Contains(block, "VERSION=") {
			for line := range strings.Lines(block) {
				name, _, _ := strings.Cut(line, "=")
				if own[name] == "" {
					t.Fatalf("the document has a value that the test does not have: %s", line)
				}
			}
			continue
		}
		script.WriteString(block)
	}
	return script.String()
}

// follow runs the commands of some blocks in the directory with a release's files.
func (s site) follow(t *testing.T, blocks ...[]string) string {
	t.Helper()
	var all []string
	for _, b := range blocks {
		all = append(all, b...)
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", s.script(t, all))
	command.Dir = s.dir
	out, err := command.CombinedOutput()
	t.Logf("%s\n%s", strings.Join(all, ""), out)
	if err != nil {
		t.Fatalf("a command of docs/install.md fails: %v\n%s", err, out)
	}
	return string(out)
}

// download copies the files of a release into a directory of their own, and returns the site there.
func download(t *testing.T, version string) site {
	t.Helper()
	from, dir := filepath.Join(*releases, version), t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatalf("the release %s is not made (%v): run make e2e-release", version, err)
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return site{dir: dir, version: version, registry: s.Registry(t, "open").Host + "/release", key: *key}
}
