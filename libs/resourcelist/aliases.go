// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Bounds of what aliases may do. A list may expand to the larger of maxExpansion
// bytes and maxExpansionFactor times its own size: shared blocks stay possible,
// while no list becomes a burden that its size does not show. maxDepth is the depth
// to which the YAML library nests without aliases.
const (
	maxExpansion       = 16 << 20
	maxExpansionFactor = 10
	maxDepth           = 10_000
)

// extent is the size of a node with its aliases expanded.
type extent struct {
	bytes int // of keys, scalars and comments, and one for each node
	depth int // of nested nodes
}

// measure measures nodes without expanding them: each once.
type measure struct {
	anchored map[*yaml.Node]extent // of anchored nodes; zero while being measured
	limit    int                   // of bytes
}

// measureAliases returns what is known of the anchors of a document of that size. It is an
// error if aliases contain themselves or expand the document beyond the bounds.
func measureAliases(document *yaml.Node, size int) (measure, error) {
	m := measure{anchored: map[*yaml.Node]extent{}, limit: max(maxExpansion, maxExpansionFactor*size)}
	_, err := m.of(document)
	return m, err
}

// of returns the node's extent.
func (m measure) of(node *yaml.Node) (extent, error) {
	if node.Kind == yaml.AliasNode {
		return m.alias(node)
	}
	sum := extent{bytes: 1 + len(node.Value) + len(node.HeadComment) + len(node.LineComment) + len(node.FootComment)}
	for _, child := range node.Content {
		part, err := m.of(child)
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

// alias returns the extent of what an alias stands for. An anchor precedes its aliases,
// so an alias of a node that is not measured yet stands inside that node.
func (m measure) alias(node *yaml.Node) (extent, error) {
	known := m.anchored[node.Alias]
	if known == (extent{}) {
		return extent{}, fmt.Errorf("line %d: the alias *%s stands inside its own anchor: write the value out",
			node.Line, node.Value)
	}
	return known, nil
}
