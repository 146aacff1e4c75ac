// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConceptsNameCode looks for the packages and names of the last column of docs/concepts.md.
func TestConceptsNameCode(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| .* \\| ([^|]*`[^|]*) \\|$").FindAllSubmatch(
		mustRead(t, filepath.Join(root, "docs/concepts.md")), -1)
	if len(rows) < 30 {
		t.Fatalf("%d terms have a name in the code", len(rows))
	}
	for _, row := range rows {
		for _, match := range regexp.MustCompile("`([a-z-]+)\\.?([A-Z]\\w*)?`").FindAllSubmatch(row[1], -1) {
			var files []string
			for _, dir := range []string{"libs", "services/*/internal", "."} {
				found, _ := filepath.Glob(filepath.Join(root, dir, string(match[1]), "*.go"))
				files = append(files, found...)
			}
			var code bytes.Buffer
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					code.Write(mustRead(t, file))
				}
			}
			declared := `(?m)^package `
			if match[2] != nil {
				declared = `(?m)^(type|var|func( \([^)]*\))?) ` + string(match[2]) + `\b`
			}
			if !regexp.MustCompile(declared).Match(code.Bytes()) {
				t.Errorf("the code has no %s", match[0])
			}
		}
	}
}
