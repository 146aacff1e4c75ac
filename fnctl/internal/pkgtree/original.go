// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Original returns copies of a file's resources as they were read, by the file's path relative to
// the tree's root.
func (t *Tree) Original(path string) []*yaml.RNode {
	var resources []*yaml.RNode
	for _, r := range t.files[path].resources {
		resources = append(resources, r.Copy())
	}
	return resources
}

// Only returns the changes of one file when resources replace its own.
func (t *Tree) Only(path string, resources []*yaml.RNode) ([]Change, error) {
	changes, err := t.Changes(resources)
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Path != path }), err
}
