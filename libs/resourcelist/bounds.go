// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkResults returns an error if the results exceed their limits. The limits keep the time and memory for decoding
// results in proportion to the list's size.
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

// mappings contains the nodes of aliases that were checked, so that each node is checked once.
type mappings map[*yaml.Node]bool

// check returns an error if a mapping in node contains too many keys, or a key twice.
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

// checkKeys returns an error if a mapping contains too many keys, or a key twice.
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

// key identifies a key of a mapping as the YAML library does. The library considers all keys that are mappings equal,
// and all keys that are sequences.
type key struct {
	kind  yaml.Kind
	value string
}
