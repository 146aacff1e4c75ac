// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Limits of YAML aliases. Without these limits, a small list could expand to gigabytes. An expanded list may have
// maxExpansion bytes, or maxExpansionFactor times the size of the original list if this is more. The maximum nesting,
// maxDepth, is the YAML library's limit for lists without aliases.
const (
	maxExpansion       = 16 << 20
	maxExpansionFactor = 10
	maxDepth           = 10_000
)

// extent is the size and depth of a YAML node after the expansion of its aliases.
type extent struct {
	bytes int // bytes of keys, scalars and comments, plus a byte per node
	depth int // nesting of nodes
}

// measure computes the sizes of YAML nodes after the expansion of aliases. It visits each node only once. For an alias,
// it adds the size of the alias's target, which it has measured before.
type measure struct {
	anchored map[*yaml.Node]extent // extents of anchored nodes that were measured completely
	limit    int                   // maximum number of bytes
}

// measureAliases measures a document after the expansion of its aliases. Before the expansion, the document has size
// bytes. measureAliases returns an error if an alias contains itself, or if the expanded document exceeds the limits.
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

// measureAlias returns the size and depth of an alias's target. A valid target ends before the alias, so it is already
// measured. If the target is not measured yet, the alias is inside its own target. measureAlias then returns an error,
// because the expansion would never end.
func (m measure) measureAlias(node *yaml.Node) (extent, error) {
	known := m.anchored[node.Alias]
	if known == (extent{}) {
		return extent{}, fmt.Errorf("line %d: the alias *%s stands inside its own anchor: write the value out",
			node.Line, node.Value)
	}
	return known, nil
}

// checkResults returns an error if a list's results are too many, too large or too deeply nested. Without these limits,
// even a small list could cost much time and memory, because we decode results to Go values.
func (d document) checkResults(results *yaml.Node) error {
	if n := len(results.Content); n > maxResults {
		return fmt.Errorf("line %d: there are %d results, and may be up to %d: report fewer", results.Line, n, maxResults)
	}
	within := measure{anchored: d.aliases.anchored, limit: max(maxResultExpansion, maxResultExpansionFactor*d.size)}
	if _, err := within.measureNode(results); err != nil {
		return err
	}
	return mappings{}.check(results)
}

// mappings contains the targets of aliases that were already checked, so that we check each target only once.
type mappings map[*yaml.Node]bool

// check returns an error if node or a node below it is a mapping with more than maxKeys keys or with a duplicate key.
func (m mappings) check(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		if m[node.Alias] {
			return nil
		}
		m[node.Alias] = true
		return m.check(node.Alias)
	}
	if node.Kind == yaml.MappingNode {
		if err := checkKeys(node); err != nil {
			return err
		}
	}
	for _, child := range node.Content {
		if err := m.check(child); err != nil {
			return err
		}
	}
	return nil
}

// checkKeys returns an error if a mapping has more than maxKeys keys, or has a key twice.
func checkKeys(mapping *yaml.Node) error {
	if n := len(mapping.Content) / 2; n > maxKeys {
		return fmt.Errorf("line %d: a mapping has %d keys, and may have up to %d: report fewer", mapping.Line, n, maxKeys)
	}
	seen := make(map[key]bool, len(mapping.Content)/2)
	for i := 0; i < len(mapping.Content); i += 2 {
		node := mapping.Content[i]
		k := key{node.Kind, node.Value}
		if seen[k] {
			return fmt.Errorf("line %d: the key %q occurs twice: remove one", node.Line, node.Value)
		}
		seen[k] = true
	}
	return nil
}

// key identifies the key of a YAML mapping. Like the YAML library, it treats all keys that are mappings as equal, and
// all keys that are sequences as equal.
type key struct {
	kind  yaml.Kind
	value string
}
