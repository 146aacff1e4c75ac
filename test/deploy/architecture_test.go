// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const architecture = "ARCHITECTURE.md"

// linkTarget matches the files that a document links to, without their sections.
var linkTarget = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// goFile matches the path of a Go file, from the root or from the directory above its package.
var goFile = regexp.MustCompile(`^[a-z-]+/.*\.go$`)

// packageRoots contains the directories whose packages ARCHITECTURE.md names without their path.
var packageRoots = []string{
	"libs", "services/gateway", "services/gateway/internal", "services/image-resolver", "services/image-resolver/internal",
	"services/pod-manager/internal", "wrapper-server/internal",
}

// findGoFile returns the path of a Go file that a document names as package/file.go or by its path from the root. The
// short name must be unique.
func findGoFile(t *testing.T, document, name string) string {
	t.Helper()
	var found []string
	for _, dir := range append([]string{""}, packageRoots...) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			found = append(found, path)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s names %s, which is the name of %d files: %v", document, name, len(found), found)
	}
	return found[0]
}

// TestPathsInDocumentsExist checks the links, and the Go files that are named by their paths, in
// the documents that show readers of the code where things are.
func TestPathsInDocumentsExist(t *testing.T) {
	for _, document := range []string{"README.md", architecture, "CONTRIBUTING.md", "test/README.md"} {
		text := string(mustRead(t, filepath.Join(root, document)))
		for _, link := range linkTarget.FindAllStringSubmatch(text, -1) {
			path := filepath.Join(filepath.Dir(document), link[1])
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s: %v", document, path, err)
			}
		}
		for _, name := range quoted(text) {
			if name = strings.TrimSpace(name); goFile.MatchString(name) {
				findGoFile(t, document, name)
			}
		}
	}
}

// TestFunctionsInArchitectureExist checks the functions that its tables name after their files.
func TestFunctionsInArchitectureExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z/-]+\\.go)` \\(`(\\w+)`\\)")
	matches := 0
	for _, r := range table(t, architecture, "question") {
		for _, m := range named.FindAllStringSubmatch(r["where"], -1) {
			matches++
			checkDeclared(t, m[1], m[2])
		}
	}
	if matches == 0 {
		t.Error("the table names no function: the expression matches nothing")
	}
	for _, title := range []string{"exec", "pod"} {
		file := "" // a row without a file continues the file above it
		for _, r := range table(t, architecture, title) {
			for word := range strings.FieldsSeq(r["function"]) {
				word = strings.TrimSuffix(word, ",")
				if name := strings.Trim(word, "`"); name != word {
					file = name
				} else {
					checkDeclared(t, file, word)
				}
			}
		}
	}
}

// checkDeclared checks that a file declares a function. A method is named with or without its receiver's type.
func checkDeclared(t *testing.T, file, function string) {
	t.Helper()
	declaration := `(?m)^func (\([^)]*\) )?` + function + `\(`
	if receiver, name, ok := strings.Cut(function, "."); ok {
		declaration = `(?m)^func \((\w+ )?\*?` + receiver + `\) ` + name + `\(`
	}
	path := findGoFile(t, architecture, file)
	if !regexp.MustCompile(declaration).Match(mustRead(t, filepath.Join(root, path))) {
		t.Errorf("%s does not declare %s", path, function)
	}
}
