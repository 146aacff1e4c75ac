// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTroubleshootingQuotesTheCode checks that the programs, or Kubernetes, produce each message of
// docs/troubleshooting.md: the texts between its "…" occur in the source.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	source := goSource(t)
	rows := 0
	for line := range strings.Lines(string(mustRead(t, filepath.Join(root, "docs/troubleshooting.md")))) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		rows++
		for _, message := range quoted(cells[1]) {
			for piece := range strings.SplitSeq(message, "…") {
				if piece = strings.Trim(piece, " :,"); !strings.Contains(source, piece) {
					t.Errorf("no program has the text %q (of the row %q)", piece, message)
				}
			}
		}
	}
	if rows < 25 {
		t.Errorf("found %d messages: does the document have another form now?", rows)
	}
}

// goSource returns the source of all programs, without tests and generated code.
func goSource(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	for _, directory := range []string{"libs", "services", "wrapper-server", "fnctl"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "/gen/") {
				return err
			}
			content, err := os.ReadFile(path)
			source.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return source.String()
}
