// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Change is one file that differs between what was read and what will be written.
type Change struct {
	// Path is the file's path, relative to the tree's root, with slashes.
	Path string
	// Before is the original content of the file; nil if there was no file.
	Before []byte
	// After is the new content; nil if the file is deleted.
	After []byte
}

// Changes returns the changes of the tree's files, by path, when resources replace the ones that
// were read.
func (t *Tree) Changes(resources []*yaml.RNode) ([]Change, error) {
	after, err := t.Files(resources)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for path, data := range after {
		before, ok := t.files[path]
		if !ok || !bytes.Equal(before.data, data) {
			changes = append(changes, Change{Path: path, Before: before.data, After: data})
		}
	}
	for path, before := range t.files {
		if _, ok := after[path]; !ok {
			changes = append(changes, Change{Path: path, Before: before.data})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return changes, nil
}

// Files returns the content of every file that has resources, by path. A file whose resources are
// equivalent to the original keeps its bytes; another one keeps the documents that have only
// comments, and its line endings.
func (t *Tree) Files(resources []*yaml.RNode) (map[string][]byte, error) {
	byFile, err := groupByFile(resources)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(byFile))
	for _, path := range slices.Sorted(maps.Keys(byFile)) {
		before, ok := t.files[path]
		if ok && sameResources(before.resources, byFile[path]) {
			files[path] = before.data
			continue
		}
		if data, done := splice(before.data, before.resources, byFile[path]); ok && done {
			files[path] = endLines(data, before.data)
			continue
		}
		data, err := encode(path, comments(path, before.data), byFile[path])
		if err != nil {
			return nil, err
		}
		files[path] = endLines(data, before.data)
	}
	return files, nil
}

// endLines uses Windows line endings if the whole file did before.
func endLines(data, before []byte) []byte {
	ends := bytes.Count(before, []byte("\r\n"))
	if ends == 0 || ends != bytes.Count(before, []byte("\n")) {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
}
