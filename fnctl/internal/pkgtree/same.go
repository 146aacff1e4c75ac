// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// sameResources reports whether resources are equivalent to their originals.
func sameResources(before, after []*yaml.RNode) bool {
	return slices.EqualFunc(before, after, func(b, a *yaml.RNode) bool {
		b, err := Strip(b)
		if err != nil {
			return false
		}
		a, err = Strip(a)
		return err == nil && sameNode(b.YNode(), a.YNode()) &&
			maps.Equal(freeComments(b.YNode()), freeComments(a.YNode()))
	})
}

// sameNode compares values, the order of fields and comments at the ends of lines. It ignores
// quotes, indentation and other style: a function that passes a resource through its own YAML
// library has not changed it.
func sameNode(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && sameValue(a, b) &&
		a.Anchor == b.Anchor && a.LineComment == b.LineComment &&
		slices.EqualFunc(a.Content, b.Content, sameNode)
}

// sameValue compares scalars. All spellings of null are the same.
func sameValue(a, b *yaml.Node) bool {
	return a.Value == b.Value || a.ShortTag() == yaml.NodeTagNull
}

// freeComments returns the lines of comments that stand on their own. The node that they belong to
// is not compared: it depends on what surrounds the resource, and differs between a ResourceList
// and a file.
func freeComments(node *yaml.Node) map[string]bool {
	lines := map[string]bool{}
	collectComments(node, lines)
	return lines
}

func collectComments(node *yaml.Node, lines map[string]bool) {
	for line := range strings.Lines(node.HeadComment + "\n" + node.FootComment) {
		if line = strings.TrimSpace(line); line != "" {
			lines[line] = true
		}
	}
	for _, child := range node.Content {
		collectComments(child, lines)
	}
}
