// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// FromYAML decodes a ResourceList's results. Older functions write a map, whose field items contains the results.
func FromYAML(node *yaml.RNode) ([]Record, error) {
	if node.IsNilOrEmpty() {
		return nil, nil
	}
	if node.YNode().Kind == yaml.MappingNode {
		field := node.Field("items")
		if field.IsNilOrEmpty() {
			return nil, nil
		}
		node = field.Value
	}
	var records []Record
	if err := node.YNode().Decode(&records); err != nil {
		return nil, fmt.Errorf("the results do not match the specification: %w", err)
	}
	return records, nil
}

// UnmarshalYAML decodes a result's field. Values may have any type. Older SDKs write proposedValue as suggestedValue.
func (f *Field) UnmarshalYAML(node *yaml.Node) error {
	var fields struct {
		Path           string    `yaml:"path"`
		CurrentValue   yaml.Node `yaml:"currentValue"`
		ProposedValue  yaml.Node `yaml:"proposedValue"`
		SuggestedValue yaml.Node `yaml:"suggestedValue"`
	}
	err := node.Decode(&fields)
	proposed := cmp.Or(nodeValue(fields.SuggestedValue), nodeValue(fields.ProposedValue))
	*f = Field{fields.Path, nodeValue(fields.CurrentValue), proposed}
	return err
}

// nodeValue returns a node's value. It is empty if the node is missing.
func nodeValue(node yaml.Node) string {
	if node.IsZero() {
		return ""
	}
	return plainValue(&node)
}
