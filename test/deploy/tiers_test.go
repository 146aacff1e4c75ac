// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest finds the names of tests in a makefile.
var namedTest = regexp.MustCompile(`\bTest[A-Z]\w*`)

// TestEachTestIsInATier checks that make runs each package of end-to-end tests, and that the tests that it leaves to
// the second tier by name exist: a test with another name would be in the first tier.
func TestEachTestIsInATier(t *testing.T) {
	content, err := os.ReadFile("../cluster.mk")
	if err != nil {
		t.Fatal(err)
	}
	tiers := string(content)
	files, err := filepath.Glob("../e2e/*/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no end-to-end tests: %v", err)
	}
	var code strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(source)
		if name := "./e2e/" + filepath.Base(filepath.Dir(file)); !strings.Contains(tiers, name) {
			t.Errorf("no target runs %s", name)
		}
	}
	_, lists, _ := strings.Cut(tiers, "\nE2E_LONG_TESTS :=")
	lists, _, found := strings.Cut(lists, "\nE2E_TIMED_PACKAGES")
	if !found {
		t.Fatal("cluster.mk has no lists of tests")
	}
	for _, name := range namedTest.FindAllString(lists, -1) {
		if !strings.Contains(code.String(), "\nfunc "+name+"(") {
			t.Errorf("cluster.mk names %s, which does not exist", name)
		}
	}
}
