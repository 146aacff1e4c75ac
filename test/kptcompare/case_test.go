// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The kinds of cases.
const (
	// same: the expected tree was written by kpt of 2026-08, and v1.0.0-beta.48 writes the same, without the status.
	same = "same"
	// today: the expected tree was written by kpt of 2026-08, and v1.0.0-beta.48 does something else.
	today = "today"
	// differs: fnctl does something else than kpt, for a reason that docs/fnctl.md gives. The expected tree was written
	// by hand.
	differs = "differs"
	// differsSince: the same, and v1.0.0-beta.48, which lacks what kpt of 2026-08 does there, leaves the expected tree.
	differsSince = "differs-since"
)

// scenario is one case: a tree, commands, and the tree after them.
type scenario struct {
	file string
	kind string
	// rows are beginnings of rows of the tables in docs/fnctl.md.
	rows   []string
	script string
	// fails reports whether the commands end with an error.
	fails   bool
	before  files
	changed files
	deleted []string
}

// wantPrefix is before the names of expected files in an archive.
const wantPrefix = "want/"

func loadScenario(t *testing.T, file string) *scenario {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{file: file, kind: same, before: files{}, changed: files{}}
	head, content := parseArchive(string(data))
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "kind:":
			s.kind = value
		case "row:":
			s.rows = append(s.rows, value)
		case "$":
			s.script += value + "\n"
		case "fails":
			s.fails = true
		case "deleted:":
			s.deleted = append(s.deleted, value)
		case "", "#":
		default:
			t.Fatalf("%s: unknown line %q", file, line)
		}
	}
	for name, text := range content {
		if want, ok := strings.CutPrefix(name, wantPrefix); ok {
			s.changed[want] = text
		} else {
			s.before[name] = text
		}
	}
	return s
}

// after returns the expected tree.
func (s *scenario) after() files {
	tree := maps.Clone(s.before)
	maps.Copy(tree, s.changed)
	for _, name := range s.deleted {
		delete(tree, name)
	}
	return tree
}

// scenarios returns all cases.
func scenarios(t *testing.T) []*scenario {
	t.Helper()
	names, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	var all []*scenario
	for _, name := range names {
		all = append(all, loadScenario(t, name))
	}
	return all
}
