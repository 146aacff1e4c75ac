// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recordStatus matches the status of a decision record with its date.
var recordStatus = regexp.MustCompile(`(?m)^Status: (accepted|superseded) on \d{4}-\d{2}-\d{2}[.,;]`)

// maxRecordLines bounds decision records, so that readers of the code read them.
const maxRecordLines = 60

// TestDecisionRecordsAreShort checks that each decision record has a status, a date and an entry in the index, and is
// short.
func TestDecisionRecordsAreShort(t *testing.T) {
	dir := filepath.Join(root, "docs/decisions")
	index := string(mustRead(t, filepath.Join(dir, "README.md")))
	paths, err := filepath.Glob(filepath.Join(dir, "0*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, path := range paths {
		name, record := filepath.Base(path), string(mustRead(t, path))
		if !recordStatus.MatchString(record) {
			t.Errorf("%s has no line such as \"Status: accepted on 2026-11-22.\"", name)
		}
		if lines := strings.Count(record, "\n"); lines > maxRecordLines {
			t.Errorf("%s has %d lines, want at most %d", name, lines, maxRecordLines)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(record, "# "), "\n")
		if entry := "- [" + title + "](" + name + ")\n"; !strings.Contains(index, entry) {
			t.Errorf("docs/decisions/README.md lacks the line %q", entry)
		}
	}
}
