// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// difference describes how trees differ; empty if they do not.
func difference(want, got files) string {
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
		case w != g:
			lines = append(lines, name+" is\n"+g+"instead of\n"+w)
		}
	}
	return strings.Join(lines, "\n")
}
