// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Change is a file whose content differs from the content that was read.
type Change struct {
	// Path is the file's path, relative to the tree's root, with slashes.
	Path string
	// Before is the original content of the file. It is nil if there was no file.
	Before []byte
	// After is the new content. It is nil if the file is deleted.
	After []byte
}

// Kind returns "changed", "created" or "deleted".
func (c Change) Kind() string {
	switch {
	case c.Before == nil:
		return "created"
	case c.After == nil:
		return "deleted"
	}
	return "changed"
}

// Changes returns the files that change, sorted by path, if the given resources replace the original resources.
func (t *Tree) Changes(resources []*yaml.RNode) ([]Change, error) {
	after, err := t.Files(resources)
	if err != nil {
		return nil, err
	}
	before := make(map[string][]byte, len(t.files))
	for path, f := range t.files {
		before[path] = f.data
	}
	return Diff(before, after), nil
}

// Diff returns the differences between two sets of files, sorted by path. The keys of both maps are paths.
func Diff(before, after map[string][]byte) []Change {
	var changes []Change
	for path, data := range after {
		if old, ok := before[path]; !ok || !bytes.Equal(old, data) {
			changes = append(changes, Change{Path: path, Before: old, After: data})
		}
	}
	for path, old := range before {
		if _, ok := after[path]; !ok {
			changes = append(changes, Change{Path: path, Before: old})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes
}

// Files returns the content of each file with resources, by path. If a file's resources are equivalent to the original
// resources, its content stays unchanged. A changed file keeps its line endings and documents with only comments.
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
		if data, done := spliceChanges(before.data, before.resources, byFile[path]); ok && done {
			files[path] = endLines(data, before.data)
			continue
		}
		data, err := encode(path, findComments(path, before.data), byFile[path])
		if err != nil {
			return nil, err
		}
		files[path] = endLines(data, before.data)
	}
	return files, nil
}

// endLines converts data to Windows line endings if all lines of before have them. before is the original content.
func endLines(data, before []byte) []byte {
	ends := bytes.Count(before, []byte("\r\n"))
	if ends == 0 || ends != bytes.Count(before, []byte("\n")) {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
}

// Original returns copies of a file's resources before any function ran. file is relative to the tree's root.
func (t *Tree) Original(file string) []*yaml.RNode {
	var resources []*yaml.RNode
	for _, r := range t.files[file].resources {
		resources = append(resources, r.Copy())
	}
	return resources
}

// IsOfSubpackage reports whether the file at this path belongs to a package inside the root package.
func (t *Tree) IsOfSubpackage(file string) bool {
	f, ok := t.files[path.Clean(file)]
	return ok && f.resources[0].GetAnnotations()[PackageAnnotation] != t.Root.Label()
}

// Only returns the changes of [Tree.Changes] for a single file.
func (t *Tree) Only(file string, resources []*yaml.RNode) ([]Change, error) {
	changes, err := t.Changes(resources)
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Path != file }), err
}
