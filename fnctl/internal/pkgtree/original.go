// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Original returns copies of a file's resources as they were read, by the file's path relative to
// the tree's root.
func (t *Tree) Original(file string) []*yaml.RNode {
	var resources []*yaml.RNode
	for _, r := range t.files[file].resources {
		resources = append(resources, r.Copy())
	}
	return resources
}

// IsOfSubpackage reports whether a file belongs to a package inside the root package. The path is relative to the
// tree's root.
func (t *Tree) IsOfSubpackage(file string) bool {
	f, ok := t.files[path.Clean(file)]
	return ok && f.resources[0].GetAnnotations()[PackageAnnotation] != t.Root.Label()
}

// Only returns the changes of a single file if the given resources replace the file's original resources.
func (t *Tree) Only(file string, resources []*yaml.RNode) ([]Change, error) {
	changes, err := t.Changes(resources)
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Path != file }), err
}
