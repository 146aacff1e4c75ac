// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkResults returns an error if a list's results are too many, too large or too deeply nested. Otherwise a small
// list could cost much time and memory, because results are decoded to Go values.
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

// mappings contains the targets of aliases that were already checked, so that each target is checked only once.
type mappings map[*yaml.Node]bool

// check returns an error if a mapping in node or below it has more than maxKeys keys, or the same key twice.
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

// checkKeys returns an error if a mapping has more than maxKeys keys, or the same key twice.
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

// key identifies the key of a YAML mapping. Two keys are equal if the YAML library considers them equal. For the
// library, all keys that are mappings are equal, and so are all keys that are sequences.
type key struct {
	kind  yaml.Kind
	value string
}
