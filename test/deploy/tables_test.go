// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"regexp"
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
