// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/test/internal/settings"
)

// row is a row of a table, by the column's title.
type row map[string]string

// table returns the rows of the one table in a document whose first column has that title.
func table(t *testing.T, document, title string) []row {
	t.Helper()
	var titles []string
	var rows []row
	for line := range strings.Lines(string(mustRead(t, filepath.Join(root, document)))) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			if len(rows) > 0 {
				return rows
			}
			titles = nil
		case titles == nil && cells[0] == title:
			titles = cells
		case len(cells) == len(titles) && !strings.HasPrefix(cells[0], "---"):
			r := row{}
			for i, title := range titles {
				r[title] = cells[i]
			}
			rows = append(rows, r)
		}
	}
	t.Fatalf("%s has no table of %q", document, title)
	return nil
}

var quotedText = regexp.MustCompile("`([^`]*)`")

// quoted returns the text between backquotes in a cell.
func quoted(cell string) []string {
	var found []string
	for _, match := range quotedText.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	return found
}

// configurationDoc is the document with the tables of flags, variables and files.
const configurationDoc = "docs/configuration.md"

// maxSettings bounds the distinct variables of all programs. A setting exists if a manifest of ours sets it, or an
// operator could not work without it.
const maxSettings = 60

// TestSettingsAreDocumented checks that the tables of variables are generated from the code, and that each variable has
// a meaning.
func TestSettingsAreDocumented(t *testing.T) {
	document := string(mustRead(t, filepath.Join(root, configurationDoc)))
	want, err := settings.Generate(root, document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, document); diff != "" {
		t.Errorf("run make generate (-code +document):\n%s", diff)
	}
	distinct := map[string]bool{}
	for _, s := range allSettings(t) {
		distinct[s.Variable] = true
		if s.Meaning == "" {
			t.Errorf("%s has no doc comment", s.Variable)
		}
	}
	if len(distinct) > maxSettings {
		t.Errorf("there are %d settings, want at most %d", len(distinct), maxSettings)
	}
}

// allSettings returns the settings of all programs.
func allSettings(t *testing.T) (all []settings.Setting) {
	t.Helper()
	for _, group := range settings.Groups {
		found, err := group.Settings(root)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// hasDefault reports whether a cell has a default: literally, or in prose if the program computes it.
func hasDefault(cell, value string) bool {
	if texts := quoted(cell); len(texts) > 0 {
		return cell == "`"+value+"`"
	}
	return value == "" || value == "0"
}

// TestDocumentHasEveryFile compares the table of files with the settings whose defaults
// are paths, and with the flags for them.
func TestDocumentHasEveryFile(t *testing.T) {
	values, paths := map[string][]string{}, map[string]bool{}
	for _, s := range allSettings(t) {
		values[s.Variable] = append(values[s.Variable], s.Default)
		if strings.HasPrefix(s.Default, "/") || strings.HasPrefix(s.Default, "./") {
			paths[s.Variable] = true
		}
	}
	for _, r := range table(t, configurationDoc, "flag") {
		values[strings.Trim(r["flag"], "`")] = quoted(r["default"])
	}
	for _, r := range table(t, configurationDoc, "file") {
		for _, name := range quoted(r["set with"]) {
			delete(paths, name)
			if len(values[name]) == 0 && strings.HasPrefix(name, "FNR_") {
				t.Errorf("no setting is called %s", name)
			}
			for _, value := range values[name] {
				if !hasDefault(r["file"], value) {
					t.Errorf("the document has %q for %s, whose default is %q", r["file"], name, value)
				}
			}
		}
	}
	if len(paths) > 0 {
		t.Errorf("the table of files lacks %v", slices.Sorted(maps.Keys(paths)))
	}
}
