// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// elsewhere are rows that a comparison of files cannot show, and the tests that hold them.
var elsewhere = map[string]string{
	"`-e KEY=VALUE`, or `-e KEY`":    "fnctl/internal/cli, testdata/local/local.txtar",
	"A render that is interrupted":   "fnctl/internal/pkgtree, write_test.go; fnctl/internal/cli, TestScreens",
	"A runtime that does not answer": "fnctl/internal/cli, testdata/script/status.txtar",
}

// rows returns the first cells of the tables that compare fnctl with kpt, and the lines of testdata/same.txt.
func rows(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../docs/fnctl.md")
	if err != nil {
		t.Fatal(err)
	}
	same, err := os.ReadFile("testdata/same.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(same)) {
		if row, ok := strings.CutPrefix(line, "- "); ok {
			all = append(all, strings.ReplaceAll(strings.TrimSpace(row), "|", `\|`))
		}
	}
	comparing := false
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		switch {
		case len(cells) < 3:
			comparing = false
		case strings.HasPrefix(line, "| `kpt fn"):
			comparing = true
		case comparing && !strings.HasPrefix(line, "|---"):
			all = append(all, strings.TrimLeft(strings.ReplaceAll(strings.TrimSpace(cells[1]), "\x00", `\|`), "*"))
		}
	}
	return all
}

// TestRows holds the tables of docs/fnctl.md and the lines of testdata/same.txt against the cases: each row has a case,
// and each case a row.
func TestRows(t *testing.T) {
	all := rows(t)
	if len(all) < 40 {
		t.Fatalf("found only %d rows", len(all))
	}
	covered := map[string]bool{}
	for _, s := range scenarios(t) {
		if len(s.rows) == 0 {
			t.Errorf("%s names no row", s.file)
		}
		for _, prefix := range s.rows {
			i := slices.IndexFunc(all, func(row string) bool { return strings.HasPrefix(row, prefix) })
			if i < 0 {
				t.Errorf("%s names the row %q: docs/fnctl.md and testdata/same.txt lack it", s.file, prefix)
				continue
			}
			covered[all[i]] = true
		}
	}
	for _, row := range all {
		other := false
		for prefix := range elsewhere {
			other = other || strings.HasPrefix(row, prefix)
		}
		if !covered[row] && !other {
			t.Errorf("no case for the row %q", row)
		}
	}
}
