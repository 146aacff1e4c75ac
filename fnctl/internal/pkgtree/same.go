// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

// IsStyle reports whether a change affects only the style of a file, such as indentation, but not the values, their
// order or the comments. It ignores the status of a Kptfile.
func (c Change) IsStyle() bool {
	if c.Before == nil || c.After == nil {
		return false
	}
	before, err := Parse(c.Before)
	if err != nil {
		return false
	}
	after, err := Parse(c.After)
	if path.Base(c.Path) == kptfile.FileName {
		for _, r := range slices.Concat(before, after) {
			_ = r.PipeE(yaml.FieldClearer{Name: statusField})
		}
	}
	return err == nil && len(before) > 0 && sameResources(before, after)
}

// sameResources reports whether two lists of resources are equivalent. It ignores annotations that name files.
func sameResources(before, after []*yaml.RNode) bool {
	return slices.EqualFunc(before, after, func(b, a *yaml.RNode) bool {
		b, err := Strip(b)
		if err != nil {
			return false
		}
		a, err = Strip(a)
		return err == nil && sameNode(b.YNode(), a.YNode()) &&
			maps.Equal(commentOutline(b.YNode()), commentOutline(a.YNode()))
	})
}

// sameNode reports whether two nodes have equal values, order of fields and line comments. It ignores quotes,
// indentation and other style, because a function may change the style just by decoding and encoding a resource.
func sameNode(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && sameValue(a, b) &&
		a.Anchor == b.Anchor && a.LineComment == b.LineComment &&
		slices.EqualFunc(a.Content, b.Content, sameNode)
}

// sameValue compares scalars of the same type. All spellings of null, such as ~, are equal.
func sameValue(a, b *yaml.Node) bool {
	return a.Value == b.Value || a.ShortTag() == yaml.NodeTagNull
}

// commentOutline returns the comments that have lines of their own. Each text begins with the number of values before
// the comment, such as "3 # ports". The number represents the comment's position. A YAML node cannot represent the
// position, because the YAML library may attach the same comment to different nodes in a file and in a ResourceList.
// Repeated comments count once.
func commentOutline(node *yaml.Node) map[string]bool {
	lines := map[string]bool{}
	values := 0
	comment := func(text string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				lines[fmt.Sprintf("%d %s", values, line)] = true
			}
		}
	}
	var visit func(node *yaml.Node)
	visit = func(node *yaml.Node) {
		comment(node.HeadComment)
		if node.Kind == yaml.ScalarNode || node.Kind == yaml.AliasNode {
			values++
		}
		for i, child := range node.Content {
			if node.Kind != yaml.MappingNode {
				visit(child)
			} else if i%2 == 0 { // the foot comment of a key follows the key's value
				comment(child.HeadComment)
				values++
				visit(node.Content[i+1])
				comment(child.FootComment)
			}
		}
		comment(node.FootComment)
	}
	visit(node)
	return lines
}
