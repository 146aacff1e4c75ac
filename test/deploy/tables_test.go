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

var (
	quotedText  = regexp.MustCompile("`([^`]*)`")
	variableOne = regexp.MustCompile(`^(FNR_[A-Z_]+|WRAPPER_SERVER_IMAGE)$`)
)

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

// configurations are the directories that define the settings of the document's tables.
var configurations = map[string]string{
	"gateway":        "services/gateway/gateway",
	"pod-manager":    "services/pod-manager/podmanager",
	"image-resolver": "services/image-resolver/imageresolver",
}

// TestDocumentHasEveryVariable compares the tables of variables with the code.
func TestDocumentHasEveryVariable(t *testing.T) {
	common := map[string]string{}
	for name, dir := range shared {
		types := structs(t, dir)
		for _, s := range fields(t, types, types["Config"], "FNR_"+strings.ToUpper(name)) {
			common[s.variable] = s.value
		}
	}
	compareVariables(t, "every program", common)
	for program, dir := range configurations {
		own := map[string]string{}
		for _, s := range settingsOf(t, dir) {
			if _, ok := common[s.variable]; !ok {
				own[s.variable] = s.value
			}
		}
		compareVariables(t, program, own)
	}
	types, sandboxes := structs(t, "services/function-runner/machine"), map[string]string{}
	for _, s := range fields(t, types, types["SandboxSettings"], "FNR") {
		sandboxes[s.variable] = s.value
	}
	compareVariables(t, "sandboxes", sandboxes)
}

// compareVariables compares a table with the defaults of variables.
func compareVariables(t *testing.T, title string, want map[string]string) {
	t.Helper()
	var documented []string
	for _, r := range table(t, configurationDoc, title) {
		names := slices.DeleteFunc(quoted(r[title]), func(s string) bool { return !variableOne.MatchString(s) })
		documented = append(documented, names...)
		for name, documented := range defaults(names, r["default"]) {
			if value, ok := want[name]; ok && !hasDefault(t, documented, value) {
				t.Errorf("%s: the document has %q for %s, whose default is %q", title, documented, name, value)
			}
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), documented); diff != "" {
		t.Errorf("variables of %s (-code +document):\n%s", title, diff)
	}
}

// defaults returns the values in a cell for each of the names: one for each, or one for all.
func defaults(names []string, cell string) map[string]string {
	texts := strings.Split(cell, ", ")
	if len(names) == 1 {
		texts = []string{cell}
	}
	documented := map[string]string{}
	for i, name := range names {
		documented[name] = texts[min(i, len(texts)-1)]
	}
	return documented
}

// hasDefault reports whether a cell has a default: literally, in prose if the program computes it, or as
// a reference to a flag.
func hasDefault(t *testing.T, cell, value string) bool {
	t.Helper()
	if texts := quoted(cell); len(texts) > 0 {
		return cell == "`"+value+"`"
	}
	if strings.HasPrefix(cell, "as the flag") {
		return slices.ContainsFunc(table(t, configurationDoc, "flag"),
			func(r row) bool { return hasDefault(t, r["default"], value) })
	}
	return value == "" || value == "0"
}

// TestDocumentHasEveryFile compares the table of files with the settings whose defaults
// are paths, and with the flags for them.
func TestDocumentHasEveryFile(t *testing.T) {
	values, paths := map[string][]string{}, map[string]bool{}
	for _, dir := range configurations {
		for _, s := range settingsOf(t, dir) {
			values[s.variable] = append(values[s.variable], s.value)
			if strings.HasPrefix(s.value, "/") || strings.HasPrefix(s.value, "./") {
				paths[s.variable] = true
			}
		}
	}
	for _, r := range table(t, configurationDoc, "flag") {
		values[strings.Trim(r["flag"], "`")] = quoted(r["default"])
	}
	for _, r := range table(t, configurationDoc, "file") {
		for _, name := range quoted(r["set with"]) {
			delete(paths, name)
			if len(values[name]) == 0 {
				t.Errorf("no setting is called %s", name)
			}
			for _, value := range values[name] {
				if !hasDefault(t, r["file"], value) {
					t.Errorf("the document has %q for %s, whose default is %q", r["file"], name, value)
				}
			}
		}
	}
	if len(paths) > 0 {
		t.Errorf("the table of files lacks %v", slices.Sorted(maps.Keys(paths)))
	}
}
