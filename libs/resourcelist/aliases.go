// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Limits of YAML aliases, which may expand a small list to gigabytes. With its aliases expanded, a list may have
// maxExpansion bytes, or maxExpansionFactor times its own size if that is more. Its maximum nesting, maxDepth,
// equals the YAML library's limit for lists without aliases.
const (
	maxExpansion       = 16 << 20
	maxExpansionFactor = 10
	maxDepth           = 10_000
)

// extent is the size of a YAML node with its aliases expanded.
type extent struct {
	bytes int // keys, scalars and comments, plus a byte per node
	depth int // nesting of nodes
}

// measure computes the sizes of YAML nodes with expanded aliases. It does not expand them, but adds the size of an
// alias's target, so that it visits each node only once.
type measure struct {
	anchored map[*yaml.Node]extent // extents of anchored nodes that were measured completely
	limit    int                   // maximum number of bytes
}

// measureAliases measures a document of size bytes. It returns an error if an alias contains itself, or if the
// document with expanded aliases exceeds the limits.
func measureAliases(document *yaml.Node, size int) (measure, error) {
	m := measure{anchored: map[*yaml.Node]extent{}, limit: max(maxExpansion, maxExpansionFactor*size)}
	_, err := m.measureNode(document)
	return m, err
}

func (m measure) measureNode(node *yaml.Node) (extent, error) {
	if node.Kind == yaml.AliasNode {
		return m.measureAlias(node)
	}
	sum := extent{bytes: 1 + len(node.Value) + len(node.HeadComment) + len(node.LineComment) + len(node.FootComment)}
	for _, child := range node.Content {
		part, err := m.measureNode(child)
		if err != nil {
			return extent{}, err
		}
		sum.bytes += part.bytes
		sum.depth = max(sum.depth, part.depth)
		if sum.bytes > m.limit || sum.depth > maxDepth {
			return extent{}, fmt.Errorf("line %d: with its aliases expanded, the list has more than %d bytes or %d levels: "+
				"use fewer or smaller aliases", child.Line, m.limit, maxDepth)
		}
	}
	sum.depth++
	if node.Anchor != "" {
		m.anchored[node] = sum
	}
	return sum, nil
}

// measureAlias returns the extent of the node that an alias refers to. The node precedes the alias. If its extent
// is not known yet, the alias is inside the node itself: measureAlias then returns an error, because the expansion
// would never end.
func (m measure) measureAlias(node *yaml.Node) (extent, error) {
	known := m.anchored[node.Alias]
	if known == (extent{}) {
		return extent{}, fmt.Errorf("line %d: the alias *%s stands inside its own anchor: write the value out",
			node.Line, node.Value)
	}
	return known, nil
}
