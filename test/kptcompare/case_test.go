// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The kinds of cases.
const (
	// same: fnctl does what the kpt of the comparison does. The expected tree was written by kpt.
	same = "same"
	// today: fnctl does what today's kpt does, and the kpt of the comparison something else.
	today = "today"
	// A third kind, "differs": fnctl does something else than kpt, for a reason that docs/fnctl.md
	// gives.
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

// expect makes a tree and an exit status the expected ones, in the file too.
func (s *scenario) expect(t *testing.T, tree files, fails bool) {
	t.Helper()
	var head strings.Builder
	data, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := parseArchive(string(data))
	for line := range strings.Lines(old) {
		if !strings.HasPrefix(line, "fails") && !strings.HasPrefix(line, "deleted:") {
			head.WriteString(line)
		}
	}
	if fails {
		head.WriteString("fails\n")
	}
	s.fails, s.changed, s.deleted = fails, files{}, nil
	content := maps.Clone(s.before)
	for _, name := range slices.Sorted(maps.Keys(s.before)) {
		if _, ok := tree[name]; !ok {
			head.WriteString("deleted: " + name + "\n")
			s.deleted = append(s.deleted, name)
		}
	}
	for name, text := range tree {
		if old, ok := s.before[name]; !ok || old != text {
			s.changed[name], content[wantPrefix+name] = text, text
		}
	}
	if err := os.WriteFile(s.file, []byte(archive(head.String(), content)), 0o644); err != nil {
		t.Fatal(err)
	}
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
