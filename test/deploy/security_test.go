// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testName     = regexp.MustCompile("`(Test\\w+)`")
)

// TestSecurityNamesItsTests holds docs/security-tests.md to the tests that it names: each row about an
// attack has some, and all exist.
func TestSecurityNamesItsTests(t *testing.T) {
	tests := testNames(t)
	document := string(mustRead(t, filepath.Join(root, "docs/security-tests.md")))
	for _, match := range testName.FindAllStringSubmatch(document, -1) {
		if !tests[match[1]] {
			t.Errorf("docs/security-tests.md names %s, and there is no such test", match[1])
		}
	}
	attacks := false
	for line := range strings.Lines(document) {
		switch {
		case strings.HasPrefix(line, "| attack |"):
			attacks = true
		case !strings.HasPrefix(line, "|"):
			attacks = false
		case attacks && !strings.HasPrefix(line, "|---") && !testName.MatchString(line):
			t.Errorf("docs/security-tests.md has no test for the row %s", line)
		}
	}
}

// testNames returns the tests of all packages.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			for _, match := range testFunction.FindAllSubmatch(mustRead(t, path), -1) {
				names[string(match[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
