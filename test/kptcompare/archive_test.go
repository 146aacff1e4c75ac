// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// files are the contents of files by path, with slashes.
type files map[string]string

// parseArchive splits a txtar archive into what is before its files, and its files.
func parseArchive(text string) (head string, content files) {
	content = files{}
	name := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(line, " --\n") {
			name = strings.TrimSuffix(rest, " --\n")
			content[name] = ""
		} else if name == "" {
			head += line
		} else {
			content[name] += line
		}
	}
	return head, content
}

// archive is the opposite of parseArchive.
func archive(head string, content files) string {
	var b strings.Builder
	b.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		b.WriteString("-- " + name + " --\n" + content[name])
	}
	return b.String()
}

// write writes files below a directory.
func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// readFiles reads all files below a directory.
func readFiles(t *testing.T, dir string) files {
	t.Helper()
	found := files{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, relErr := filepath.Rel(dir, name)
		if relErr != nil {
			return relErr
		}
		found[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// difference describes the difference of trees. It is empty if they are equal. Files are equal if their bytes are, or
// their values if they are of byValues.
func difference(t *testing.T, want, got files) string {
	t.Helper()
	var lines []string
	for _, name := range slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for name := range want {
			yield(name)
		}
		for name := range got {
			yield(name)
		}
	})) {
		w, wanted := want[name]
		g, there := got[name]
		switch {
		case !there:
			lines = append(lines, name+" is missing")
		case !wanted:
			lines = append(lines, name+" should not be there:\n"+g)
		case w != g && (!byValues[path.Base(name)] || !sameValues(t, w, g)):
			lines = append(lines, name+" is\n"+g+"instead of\n"+w)
		}
	}
	return strings.Join(lines, "\n")
}

// defaultSeverity is what a runner gives to the results of a failed function that have no severity: a row of
// docs/fnctl.md.
var defaultSeverity = regexp.MustCompile(`(?m)^ *severity: info\n`)

// byValues are the files that are compared by their values: kpt writes them anew.
var byValues = map[string]bool{"Kptfile": true, "results.yaml": true}

// failureTexts are the fields with texts about failures, on lines of their own at the ends of status, conditions and
// steps; with the deeper lines of a text of several lines.
var failureTexts = regexp.MustCompile(`(?m)^( *(?:executionError|errorSummary|  message):)` +
	`(?: [^|\n]*\n| \|-?\n(?:\s{6,}.*\n)*)`)

// sameValues reports whether two YAML files have the same values.
func sameValues(t *testing.T, a, b string) bool {
	t.Helper()
	var valueA, valueB any
	for text, value := range map[string]*any{a: &valueA, b: &valueB} {
		// The texts about failures are internal errors in kpt, and sentences in fnctl, as docs/fnctl.md says.
		text = failureTexts.ReplaceAllString(defaultSeverity.ReplaceAllString(text, ""), "$1 TEXT\n")
		if err := yaml.Unmarshal([]byte(text), value); err != nil {
			return false // cases have invalid Kptfiles too: those have to be equal byte for byte
		}
	}
	return reflect.DeepEqual(valueA, valueB)
}

// withoutStatus returns files whose Kptfiles have no status, which kpt v1.0.0-beta.48 does not write.
func (f files) withoutStatus(t *testing.T) files {
	t.Helper()
	without := files{}
	for name, text := range f {
		if node, err := yaml.Parse(text); err == nil && path.Base(name) == "Kptfile" && node.Field("status") != nil {
			if err := node.PipeE(yaml.Clear("status")); err != nil {
				t.Fatal(err)
			}
			text = node.MustString()
		}
		without[name] = text
	}
	return without
}
