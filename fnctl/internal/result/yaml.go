// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// item is a result as functions write it in a ResourceList, with fields for current and for older SDKs.
type item struct {
	Message     string `yaml:"message"`
	Severity    string `yaml:"severity"`
	ResourceRef *struct {
		Reference `yaml:",inline"`
		// Metadata contains the namespace and the name in results of older SDKs.
		Metadata Reference `yaml:"metadata"`
	} `yaml:"resourceRef"`
	Field *struct {
		Path          string    `yaml:"path"`
		CurrentValue  yaml.Node `yaml:"currentValue"`
		ProposedValue yaml.Node `yaml:"proposedValue"`
		// SuggestedValue is the name of ProposedValue in results of older SDKs.
		SuggestedValue yaml.Node `yaml:"suggestedValue"`
	} `yaml:"field"`
	File *File             `yaml:"file"`
	Tags map[string]string `yaml:"tags"`
}

// FromYAML returns the results of a ResourceList. Older functions write them to the field items of a map.
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
	var items []item
	if err := node.YNode().Decode(&items); err != nil {
		return nil, fmt.Errorf("the results do not match the specification: %w", err)
	}
	records := make([]Record, 0, len(items))
	for _, i := range items {
		records = append(records, i.record())
	}
	return records, nil
}

func (i item) record() Record {
	r := Record{Message: i.Message, Severity: i.Severity, File: i.File, Tags: i.Tags}
	if ref := i.ResourceRef; ref != nil {
		r.ResourceRef = &Reference{
			APIVersion: ref.APIVersion, Kind: ref.Kind,
			Name:      cmp.Or(ref.Metadata.Name, ref.Name),
			Namespace: cmp.Or(ref.Metadata.Namespace, ref.Namespace),
		}
	}
	if f := i.Field; f != nil {
		r.Field = &Field{Path: f.Path, CurrentValue: nodeValue(f.CurrentValue), ProposedValue: nodeValue(f.ProposedValue)}
		r.Field.ProposedValue = cmp.Or(nodeValue(f.SuggestedValue), r.Field.ProposedValue)
	}
	return r
}

// nodeValue returns a node's value. It is empty if the node is missing.
func nodeValue(node yaml.Node) string {
	if node.IsZero() {
		return ""
	}
	return plainValue(&node)
}
