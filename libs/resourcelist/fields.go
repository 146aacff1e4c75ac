// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// topLevel returns the values of a mapping by their keys. It returns an error if a key occurs twice or is not a
// string.
func topLevel(root *yaml.Node) (map[string]*yaml.Node, error) {
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the document is %s, want a mapping with kind: %s", describeKind(root), kind)
	}
	fields := make(map[string]*yaml.Node, len(root.Content)/2)
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a top-level key is %s, want a string", key.Line, describeKind(key))
		}
		if _, ok := fields[key.Value]; ok {
			return nil, fmt.Errorf("line %d: the top-level key %q occurs twice: remove one", key.Line, key.Value)
		}
		fields[key.Value] = value
	}
	return fields, nil
}

// checkKind returns an error unless the value of the field "kind" is "ResourceList".
func checkKind(value *yaml.Node) error {
	switch {
	case value == nil:
		return fmt.Errorf("kind is missing, want %s", kind)
	case value.Kind != yaml.ScalarNode:
		return fmt.Errorf("line %d: kind is %s, want %s", value.Line, describeKind(value), kind)
	case value.Value != kind:
		return fmt.Errorf("line %d: kind is %q, want %s", value.Line, value.Value, kind)
	}
	return nil
}

// checkShape returns an error if the named field has a value of another YAML kind than want. The field may also be
// missing or null.
func checkShape(name string, value *yaml.Node, want yaml.Kind) error {
	if isNull(value) || value.Kind == want {
		return nil
	}
	wanted := describeKind(&yaml.Node{Kind: want})
	return fmt.Errorf("line %d: %s is %s, want %s", value.Line, name, describeKind(value), wanted)
}

func isNull(value *yaml.Node) bool {
	return value == nil || (value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null")
}

func describeKind(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "null"
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a sequence"
	case node.Kind == yaml.AliasNode:
		return "an alias (*" + node.Value + ")"
	}
	return "a scalar"
}
