// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// linkTarget matches the files that a document links to, without their sections.
var linkTarget = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// goFile matches the path of a Go file from the root.
var goFile = regexp.MustCompile(`^[a-z-]+/.*\.go$`)

// TestPathsInDocumentsExist checks the links, and the Go files that are named by their paths, in
// the documents that show readers of the code where things are.
func TestPathsInDocumentsExist(t *testing.T) {
	for _, document := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "test/README.md"} {
		text := string(mustRead(t, filepath.Join(root, document)))
		var paths []string
		for _, link := range linkTarget.FindAllStringSubmatch(text, -1) {
			paths = append(paths, filepath.Join(filepath.Dir(document), link[1]))
		}
		for _, name := range quoted(text) {
			if name = strings.TrimSpace(name); goFile.MatchString(name) {
				paths = append(paths, name)
			}
		}
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s: %v", document, path, err)
			}
		}
	}
}

// TestFunctionsInArchitectureExist checks the functions that its table names after their files.
func TestFunctionsInArchitectureExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z/-]+\\.go)` \\(`(\\w+)`\\)")
	matches := 0
	for _, r := range table(t, "ARCHITECTURE.md", "question") {
		for _, m := range named.FindAllStringSubmatch(r["where"], -1) {
			matches++
			declared := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + m[2] + `\(`)
			if !declared.Match(mustRead(t, filepath.Join(root, m[1]))) {
				t.Errorf("%s does not declare %s", m[1], m[2])
			}
		}
	}
	if matches == 0 {
		t.Error("the table names no function: the expression matches nothing")
	}
}
